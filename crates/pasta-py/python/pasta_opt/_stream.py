"""Rows that come once: a queue, a cursor, a sensor."""

from __future__ import annotations

import functools
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._native import _number, _whole
from ._oracle import BATCHED_BLOCK, Streamed, _name_of
from ._result import Stop

if TYPE_CHECKING:
    from ._result import Certificate, Result

Vector = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

#: Of words of 64 bits, the three that name a sample.
NAMES = 2**192


class Stream(Streamed):
    """An oracle of rows that come once and cannot be asked for again: messages of a queue, a database cursor, a sensor.

    A run asks about one sample at several points, and again some steps later; it asks for samples by name. A stream has neither names nor a way back. So each name is given the next row,
    and the last `window` rows that were given one are kept. No row has two names: what the steps have used never certifies a point.

    rows
        An iterable or an iterator. A second run goes on where the first one stopped reading.
    gradient
        ``gradient(x, rows)``: the sum of the gradients of the rows in a list, or an array with one in each row; or a pair ``(loss, gradient)``, as for :class:`Oracle`.
    window
        How many rows are kept by name, and kept back at most. ``method="auto"`` came back to rows of the last 2.8 % of its run at most, on one problem where that was tried; other methods come back to none. A
        run that wants a row which has left the window ends there, and says so.
    kept
        The share of rows that is kept back for certificates, as a coin of its own decides: at the end of the stream there are no others to certify the point with.
    losses, pathwise, name
        As for :class:`Oracle`.

    **When the stream ends**, so does the run, with its point: ``result.stop.meaning`` says how many rows there were. With a target, what was kept back is then used for one last certificate, which may bound the gradient without reaching
    the target.

    **What is promised, and what is not.** A certificate holds for a point if the rows are independent draws of one law, as for every oracle; a stream may drift or come in order, which nothing here can see, and then the certificate is about the rows that it
    has read. `delta` covers the certificates of the run and the last one together, half of it each. The bits are the same where the same rows come in the same order. But nothing can be drawn again: there is no :func:`resume`, no `output`, no :func:`verify` and no
    :func:`compare`, and `workers` do not apply. The result says so, in ``result.answer``.

    >>> import numpy as np, pasta_opt
    >>> rng = np.random.default_rng(7)
    >>> def rows():
    ...     while True:
    ...         a = rng.normal(size=3)
    ...         yield a, a @ [1.0, -2.0, 3.0] + rng.normal()
    >>> def gradient(x, rows):
    ...     a, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    ...     return (a @ x - y) @ a
    >>> result = pasta_opt.minimize(pasta_opt.Stream(rows(), gradient), np.zeros(3), target=0.2)
    >>> result.stop.kind, bool(np.linalg.norm(result.x - [1, -2, 3]) < 0.2)
    ('certified', True)
    """

    def __init__(
        self,
        rows: Iterable[Any],
        gradient: Callable[..., Any],
        *,
        window: int = 65_536,
        kept: float = 0.25,
        losses: bool | None = None,
        pathwise: bool = True,
        name: str | None = None,
    ) -> None:
        if not callable(gradient):
            raise TypeError(f"gradient must be a function of x and a list of rows, but is {gradient!r}")
        self._rows = iter(rows)
        self.gradient = gradient
        self.window = _whole("window", window, BATCHED_BLOCK, 2**40)
        self.kept = _number("kept", kept)
        if not 0.0 <= self.kept <= 0.9:
            raise ValueError(f"kept must be a share from 0 to 0.9, but is {kept!r}")
        self.losses, self.pathwise = losses, bool(pathwise)
        self.name = _name_of(gradient) if name is None else name
        #: Rows that were read so far.
        self.read = 0
        #: Why there are no more rows for steps; None as long as there are.
        self.ended: str | None = None
        self._most: int | None = None
        self._named: OrderedDict[tuple[int, int, int], Any] = OrderedDict()
        # For each kind of samples, the last name whose row has left the window.
        self._gone: dict[tuple[int, int], int] = {}
        self._back: deque[Any] = deque()
        # Of the rows kept back, those that steps may have at the end.
        self._spare = 0
        self._coin = random.Random(0)

    def __repr__(self) -> str:
        return f"<Stream: {self.name}, {self.read} rows read, {len(self._back)} of them kept back>"

    @property
    def kept_back(self) -> int:
        """Rows that are kept back, and were not used for anything yet."""
        return len(self._back)

    def limit(self, rows: int | None) -> None:
        """Begins a run, which reads at most so many rows."""
        self._most = None if rows is None else self.read + rows
        self.ended = None
        self._named.clear()
        self._gone.clear()

    def named(self, key: Sequence[int], counters: Sequence[Sequence[int]]) -> list[Any]:
        """The rows of some samples, by the positions of their generators."""
        certifies = key[1] in _engine.CERTIFYING
        return [self._of((key[0], key[1], _name(counter)), certifies) for counter in counters]

    def _of(self, name: tuple[int, int, int], certifies: bool) -> Any:
        if name in self._named:
            return self._named[name]
        if name[2] <= self._gone.get(name[:2], -1):
            self._end(f"the run asked again for a row that had left the window of {self.window} rows: give a larger window=")
        row = self._for_certificate() if certifies else self._for_step()
        self._named[name] = row
        if len(self._named) > self.window:
            (seed, role, number), _ = self._named.popitem(last=False)
            self._gone[seed, role] = max(number, self._gone.get((seed, role), -1))
        return row

    def _for_certificate(self) -> Any:
        if self.ended is not None:
            # What is kept back is for the last certificate, which is made of all of it.
            raise _engine.StreamEnded(0)
        return self._back.popleft() if self._back else self._next(0)

    def _for_step(self) -> Any:
        while self.ended is None:
            row = self._next(None)
            if self._coin.random() >= self.kept or len(self._back) >= self.window:
                return row
            self._back.append(row)
        if self._spare == 0:
            raise _engine.StreamEnded(0)
        self._spare -= 1
        return self._back.popleft()

    def _next(self, left: int | None) -> Any:
        """The next row, whatever it is for."""
        if self._most is not None and self.read >= self._most:
            self._end("the budget of rows was read", left)
        for row in self._rows:
            self.read += 1
            return row
        self._end(f"the stream ended after {self.read} rows", left)

    def _end(self, why: str, left: int | None = None) -> None:
        if self.ended is None:
            # Half for a last look at the point, where the run wants one, and the rest for its certificate.
            self.ended, self._spare = why, len(self._back) // 2
        raise _engine.StreamEnded(self._spare if left is None else left)

    def last(self) -> Stream:
        """The rows that are kept back, as a stream of their own."""
        back = Stream(tuple(self._back), self.gradient, window=self.window, kept=0.0, losses=self.losses, pathwise=self.pathwise, name=self.name)
        self._back.clear()
        self._spare = 0
        return back


def on_streams(function: Function) -> Function:
    """Has `minimize` run on a stream: the stream is the limit, and what it has kept back certifies the point at its end."""

    @functools.wraps(function)
    def streamed(oracle: Any, x0: Any, **keywords: Any) -> Any:
        return _run(function, oracle, x0, keywords) if isinstance(oracle, Stream) else function(oracle, x0, **keywords)

    return cast(Function, streamed)


def reading_streams(function: Function) -> Function:
    """Has a function that asks about one point read a stream, and say if that ends before it is done."""

    @functools.wraps(function)
    def streamed(oracle: Any, *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(oracle, Stream):
            return function(oracle, *arguments, **keywords)
        oracle.limit(None)
        try:
            return function(oracle, *arguments, **{**keywords, "threads": 1})
        except ValueError as error:
            if oracle.ended is None:
                raise
            raise ValueError(f"{oracle.ended}, too few: {error}") from error

    return cast(Function, streamed)


def _run(minimize: Callable[..., Result], stream: Stream, x0: Any, keywords: dict[str, Any]) -> Result:
    if keywords.get("output") is not None:
        raise TypeError("output= keeps a run to be resumed, but the rows of a stream come once")
    target, delta = keywords.get("target"), _number("delta", keywords.get("delta", 0.05))
    rows = keywords.get("budget")
    rows = None if rows is None or rows == float("inf") else _whole("budget", rows, 1, 2**127)
    # One thread: which row is given to which sample is decided in the order of questions.
    keywords = {**keywords, "threads": 1}
    if target is not None:
        # The end of the stream is the limit. Half of delta is for the last certificate.
        keywords |= {"delta": delta / 2, "budget": None, "no_limit": True}
    elif rows is not None:
        # Of the rows that may be read, those that are not kept back.
        keywords["budget"] = max(1, round(rows * (1.0 - stream.kept)))
    stream.limit(rows)
    try:
        result = minimize(stream, x0, **keywords)
    except ValueError as error:
        if stream.ended is None:
            raise
        raise ValueError(f"{stream.ended}, before the run could take a step") from error
    return _told(result, stream, _last(result, stream, keywords))


def _last(result: Result, stream: Stream, keywords: dict[str, Any]) -> Certificate | None:
    """A certificate of the point that a stream has ended at, from all rows that are kept back."""
    target = keywords.get("target") if result.of_start is None else result.of_start.target
    is_lost = result.stop.kind in ("diverged", "not-finite", "unbounded", "void")
    is_certified = result.certificate is not None and result.certificate.is_certified
    if stream.ended is None or not isinstance(target, (int, float)) or is_lost or is_certified or not stream.kept_back:
        return None
    from ._measure import certify

    count = stream.kept_back
    of_run = {name: keywords[name] for name in ("delta", "certificate", "seed", "bounds", "term", "gamma") if name in keywords}
    return certify(stream.last(), result.x, target=target, budget=count, **of_run)


def _name(counter: Sequence[int]) -> int:
    """A number for a sample, from where its generator begins: samples of a step follow each other, and so do steps."""
    return ((counter[1] | counter[2] << 64 | counter[3] << 128) + 1) % NAMES


def _told(result: Result, stream: Stream, certificate: Certificate | None) -> Result:
    """The result of a run on a stream, with what became of the stream, its last certificate, and what cannot be had."""
    answer, stop = result.answer, result.stop
    if stream.ended is not None:
        stop = replace(stop, meaning=f"{stream.ended}; {stop.meaning}")
        answer = [*answer, ("ended", stream.ended)]
    if certificate is not None and certificate.is_certified:
        stop = Stop("certified", f"{stream.ended}; the point is certified by rows that were kept back")
        # In the place of the verdict that the run had without them.
        answer = [("certified", certificate.words), ("provided", certificate.statement), *answer[1:]]
    elif certificate is not None:
        answer = [*answer, ("last certificate", certificate.statement)]
    answer = [*answer, ("stream", f"{stream.read} rows read, which cannot be drawn again: no resume, no verify")]
    if result.asked:
        answer.append(("assumed", "rows are independent draws of one law; drift and order are not seen"))
    return replace(result, stop=stop, certificate=certificate or result.certificate, answer=answer)
