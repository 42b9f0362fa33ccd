"""Oracles as people write them, and what the engine asks of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._native import Native

Vector = NDArray[np.float64]

#: Samples in a block: enough to make the price of a call small where a call answers for all of them, and few enough to stop soon.
BATCHED_BLOCK = 256
BLOCK = 8


class Oracle:
    """A stochastic gradient, with what its signature cannot tell.

    A plain function is enough for :func:`minimize` in most cases. `gradient` has one of these forms:

    * ``gradient(x, rng)``: the gradient of one sample, an array of as many numbers as x has. Costs a call, and setting a generator
      (about 1.5 microseconds), for each sample.
    * ``gradient(x, rng, n)``: the *sum* of the gradients of n samples, or an array of shape (n, d) with one in each row. Costs a
      call for each block of samples: by far the faster form where numpy does the work.

    Either may return a tuple ``(loss, gradient)``; with n samples, the sum of the losses or an array of n.

    `rng` is a ``numpy.random.Generator`` that is set to the address of the sample (or of the block): asked again, at this point or at
    another, it draws the same numbers. Draw from nothing else, and do not let x decide how much is drawn.

    batched
        Whether the function takes n. By default the signature says so.
    losses
        Whether it returns ``(loss, gradient)``. By default one sample at x0 shows it, which is counted.
    block
        The most samples of a call, 256 where the function takes n. Sums are taken over blocks of this size in a fixed order, so it is
        part of the result's bits, as the seed is.
    pathwise
        Whether the gradient of a sample is that of its loss, as the check before a run expects. ``pathwise=False`` is for likelihood ratios (score functions) and
        other gradients that belong to the losses in the mean alone: then only means are compared, and certificates compare nothing.
    name
        What it is. A run is only resumed on an oracle of the same name, dimension and block.

    >>> import numpy as np, pasta_opt
    >>> oracle = pasta_opt.Oracle(lambda *args: args[0], batched=False, losses=False, name="half of the square of x")
    >>> pasta_opt.minimize(oracle, [1.0], budget=2000).stop.kind
    'settled'
    """

    def __init__(
        self,
        gradient: Callable[..., Any],
        *,
        batched: bool | None = None,
        losses: bool | None = None,
        block: int | None = None,
        pathwise: bool = True,
        name: str | None = None,
    ) -> None:
        if isinstance(gradient, type) and issubclass(gradient, Problem):
            raise TypeError(f"the oracle must be an object of the class {gradient.__name__}, {gradient.__name__}(..), not the class itself")
        if not callable(gradient):
            raise TypeError(f"the oracle must be a function, an Oracle or a Problem, but is {_a(gradient)}")
        self.gradient = gradient
        self.batched = takes_count(gradient) if batched is None else bool(batched)
        self.losses = losses
        self.block = _block(block, self.batched)
        self.pathwise = bool(pathwise)
        self.name = _name_of(gradient) if name is None else name


class Problem:
    """A stochastic objective with more than a gradient: a base class.

    Override `gradient`, in either form of :class:`Oracle`; and where it helps, `difference` (the gradients of the same samples at two
    points, subtracted: less rounding and often half the work) and `loss`, with the same last arguments as `gradient`. `name`,
    `block` and `pathwise` may be set, too.

    >>> import numpy as np, pasta_opt
    >>> class Mean(pasta_opt.Problem):
    ...     '''E (x - xi)^2 / 2 with xi exponential of mean 1: the minimiser is 1.'''
    ...     def gradient(self, x, rng, n):
    ...         return n * x - rng.exponential(size=n).sum()
    ...     def difference(self, x, y, rng, n):
    ...         return n * (x - y)
    ...     def loss(self, x, rng, n):
    ...         return (x[0] - rng.exponential(size=n)) ** 2 / 2
    >>> result = pasta_opt.minimize(Mean(), [5.0], budget=20_000)
    >>> bool(abs(result.x[0] - 1) < 0.1)
    True
    """

    name: str | None = None
    block: int | None = None
    pathwise: bool = True

    # Of the one kind that a type checker lets subclasses define with or without n.
    def gradient(self, *args: Any, **kwargs: Any) -> Any:
        """gradient(x, rng) or gradient(x, rng, n): the gradient of one sample, or the sum over n."""
        raise NotImplementedError(f"{type(self).__name__} has to define gradient(self, x, rng) or gradient(self, x, rng, n)")

    def difference(self, *args: Any, **kwargs: Any) -> Any:
        """difference(x, y, rng) or difference(x, y, rng, n): the gradient at x minus the gradient at y, of the same samples."""
        raise NotImplementedError

    def loss(self, *args: Any, **kwargs: Any) -> Any:
        """loss(x, rng) or loss(x, rng, n): the loss of the sample whose gradient `gradient` gives, or the sum over n."""
        raise NotImplementedError


class Structured:
    """An oracle of something else than a vector: a base class, for the oracles of JAX.

    `bind` takes the start as the user gives it and returns an :class:`Oracle` of vectors, the start as a vector, and the function that makes
    what the user gave of a vector.
    """

    def bind(self, start: Any) -> tuple[Oracle, Vector, Callable[[Vector], Any]]:
        """An oracle of vectors, the start as one, and the way back."""
        raise NotImplementedError

    def point(self) -> Any:
        """The point that the oracle itself knows, for where none is given."""
        raise TypeError("say at which point: this oracle does not know one of its own")


class Streamed:
    """An oracle of rows that come once: a base class, for streams."""

    gradient: Callable[..., Any]
    losses: bool | None
    pathwise: bool
    name: str

    def named(self, key: Sequence[int], counters: Sequence[Sequence[int]]) -> list[Any]:
        """The rows of some samples, by the positions of their generators."""
        raise NotImplementedError


def unless_streamed(oracle: object, what: str) -> None:
    """Refuses what needs samples again that a stream has handed out."""
    if isinstance(oracle, Streamed):
        raise TypeError(f"{what}, but the rows of a stream come once")


class Computed:
    """An oracle that others compute, block by block: a base class, for pools."""

    oracle: Any

    def sums(self, dim: int, asked: Sequence[tuple[Any, ...]]) -> list[Vector]:
        """The sums of some blocks, each with the arguments of :meth:`Leaves.sums`, in their order."""
        raise NotImplementedError


def takes_count(function: Callable[..., Any]) -> bool:
    """Whether a function takes n after x and rng."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        if len(needed) == 3 or (len(needed) == 2 and len(positional) > 2 and positional[2].name == "n"):
            return True
        if len(needed) == 2:
            return False
        if len(positional) < 2 or len(needed) > 3:
            name = _name_of(function)
            raise TypeError(f"{name} must take (x, rng) or (x, rng, n), but its arguments are {inspect.signature(function)}")
    raise TypeError(
        f"the signature of {_name_of(function)} does not say whether it takes n; "
        "wrap it: pasta_opt.Oracle(function, batched=True) or batched=False"
    )


class Leaves:
    """What the engine asks: sums over the samples of a block, at some points."""

    def __init__(self, oracle: object, dim: int) -> None:
        self.dim = dim
        self._gradient: Callable[..., Any]
        self.batched: bool
        self.losses: bool | None
        self.block: int
        self.pathwise = True
        self._difference: Callable[..., Any] | None = None
        self._loss: Callable[..., Any] | None = None
        #: The oracle of the library, if it is one: then nothing here is called.
        self.native: _engine.Native | None = None
        #: The processes that compute it, if it is not this one.
        self._pool: Computed | None = None
        #: The rows that take the place of generators, if they come once.
        self._stream: Streamed | None = None
        self._bits = np.random.Philox(key=[0, 0])
        self._rng: Any = np.random.Generator(self._bits)
        if isinstance(oracle, Computed):
            self._pool = oracle
            oracle = oracle.oracle
        if isinstance(oracle, Native):
            if oracle.dim != dim:
                raise ValueError(f"{oracle.name} has {oracle.dim} coordinates, but the start has {dim}")
            self.native, self.called, self.identity = oracle._native, oracle.name, oracle._native.identity
            self.batched, self.losses, self.block = True, oracle._native.losses, BATCHED_BLOCK
            return
        if isinstance(oracle, Streamed):
            gradient, self._stream = oracle.gradient, oracle
            self._gradient = lambda x, rows, n: gradient(x, rows)
            # Each sample has a name of its own, by which its row is kept.
            self.batched, self.losses, self.block = False, oracle.losses, BATCHED_BLOCK
            self.pathwise, name = oracle.pathwise, oracle.name
        elif isinstance(oracle, Problem):
            kind = type(oracle)
            self._gradient = oracle.gradient
            if kind.gradient is Problem.gradient:
                oracle.gradient(np.zeros(dim), np.random.default_rng(0))
            self.batched = takes_count(oracle.gradient)
            self.losses = False
            if kind.difference is not Problem.difference:
                self._difference = oracle.difference
            if kind.loss is not Problem.loss:
                self._loss, self.losses = oracle.loss, True
            self.block, self.pathwise = _block(oracle.block, self.batched), bool(oracle.pathwise)
            name = oracle.name or f"{kind.__module__}.{kind.__qualname__}"
        else:
            if not isinstance(oracle, Oracle):
                oracle = Oracle(oracle)  # type: ignore[arg-type]
            self._gradient, self.batched, self.losses = oracle.gradient, oracle.batched, oracle.losses
            self.block, self.pathwise, name = oracle.block, oracle.pathwise, oracle.name
        self.called = name
        self.identity = f"{name}, {dim} coordinates, blocks of {self.block}"

    @property
    def pooled(self) -> bool:
        """Whether other processes compute it."""
        return self._pool is not None

    def all_sums(self, asked: list[tuple[Any, ...]]) -> list[Vector]:
        """The sums of several blocks, computed by other processes."""
        # Whether there are losses is seen here.
        if self.losses is None or self._pool is None:
            return [self.sums(*leaf) for leaf in asked]
        return self._pool.sums(self.dim, asked)

    def sums(
        self,
        points: list[Vector],
        key: list[int],
        counters: list[list[int]],
        count: int,
        differences: bool,
        losses: bool,
    ) -> Vector:
        """Rows of sums (or of sums of differences to the last point), and then the sums of the losses if they are wanted."""
        rows, dim = len(points) - differences, self.dim
        out = np.zeros(rows * dim + (len(points) if losses else 0))
        inner: dict[str, list[int]] = {"counter": counters[0], "key": key}
        # Lists: to set a generator from arrays takes three times as long.
        state: Any = {"bit_generator": "Philox", "state": inner, "buffer": [0, 0, 0, 0]}
        state.update(buffer_pos=4, has_uint32=0, uinteger=0)
        n = (count,) if self.batched else ()
        if self._stream is not None:
            self._rng, counters, n = self._stream.named(key, counters), counters[:1], (count,)
        bits, rng = self._bits, self._rng
        for counter in counters:
            inner["counter"] = counter
            if differences:
                self._add_differences(points, n, state, out)
            for i, x in enumerate(points):
                if differences and not (losses and self._loss is None):
                    break
                bits.state = state
                loss, gradient = self._called(x, rng, n)
                if not differences:
                    out[i * dim : (i + 1) * dim] += _summed(gradient)
                if losses and self._loss is None:
                    out[rows * dim + i] += self._loss_of(loss, n)
            if losses and self._loss is not None:
                for i, x in enumerate(points):
                    bits.state = state
                    out[rows * dim + i] += self._loss_of(self._loss(x, rng, *n), n)
        return out

    def _add_differences(self, points: list[Vector], n: tuple[int, ...], state: Any, out: Vector) -> None:
        bits, rng, dim, base = self._bits, self._rng, self.dim, points[-1]
        if self._difference is None:
            bits.state = state
            # A copy: the function may write its next answer to the same memory.
            at_base = self._called(base, rng, n)[1].copy()
        for i, x in enumerate(points[:-1]):
            bits.state = state
            if self._difference is not None:
                change = self._gradient_of(self._difference(x, base, rng, *n), n, "difference")
            else:
                here = self._called(x, rng, n)[1]
                # Sample by sample where that is possible: sums share their leading digits near x = y.
                change = here - at_base if here.shape == at_base.shape else _summed(here) - _summed(at_base)
            out[i * dim : (i + 1) * dim] += _summed(change)

    def _called(self, x: Vector, rng: Any, n: tuple[int, ...]) -> tuple[Any, Vector]:
        """The loss, if there is one, and the gradient, as the user's function has it."""
        try:
            value = self._gradient(x, rng, *n)
        except StopIteration as error:
            raise RuntimeError(f"an iterator ended inside of {self.called}: rows that come once are for pasta_opt.Stream(rows, gradient)") from error
        is_pair = isinstance(value, tuple) and len(value) == 2
        if self.losses is None:
            self.losses = is_pair
        if self._loss is not None:
            return None, self._gradient_of(value, n, "gradient")
        if is_pair and not self.losses:
            raise ValueError(
                f"{self.called} returned a pair, which is read as (loss, gradient), but losses=False was declared or it "
                "returned no loss before; a gradient of two numbers is a list or an array"
            )
        if not is_pair and self.losses:
            raise ValueError(f"{self.called} must return (loss, gradient), as it was declared or did before, but returned {_a(value)}")
        return (value[0], self._gradient_of(value[1], n, "gradient", is_pair)) if is_pair else (None, self._gradient_of(value, n, "gradient"))

    def _gradient_of(self, value: Any, n: tuple[int, ...], what: str, is_second: bool = False) -> Vector:
        _unmasked(value, f"the {what} of {self.called}")
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"the {what} of {self.called} is no array: {error}") from None
        if array.dtype != np.float64:
            if array.dtype.kind not in "fiu":
                got = _a(value) + (f" of dtype {array.dtype}" if isinstance(value, np.ndarray) else "")
                hint = "; does the function return it?" if value is None else ""
                raise TypeError(f"the {what} of {self.called} must be an array of real numbers, but is {got}{hint}")
            array = array.astype(np.float64)
        shape, wanted = array.shape, (self.dim,)
        if shape == wanted or (n and shape == (n[0], self.dim)):
            return array
        if shape == () and self.dim == 1:
            return array.reshape(1)
        choices = f"{wanted} or {(n[0], self.dim)}" if n else f"{wanted}"
        hint = ""
        if is_second or (isinstance(value, tuple) and len(value) == 2):
            hint = "; a pair is read as (loss, gradient), so a gradient of two numbers has to be a list or an array"
        elif n == () and len(shape) == 2 and shape[1] == self.dim:
            hint = "; for several samples at once, let the function take n: (x, rng, n)"
        raise ValueError(f"the {what} of {self.called} must have shape {choices}, but has shape {shape}{hint}")

    def _loss_of(self, value: Any, n: tuple[int, ...]) -> float:
        _unmasked(value, f"the loss of {self.called}")
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"the loss of {self.called} must be a real number, but is {_a(value)}")
        if array.size == 1:
            return float(array.reshape(()))
        if n and array.shape == (n[0],):
            return float(array.sum(dtype=np.float64))
        choices = f"a number or an array of shape ({n[0]},)" if n else "a number"
        raise ValueError(f"the loss of {self.called} must be {choices}, but has shape {array.shape}")


def _unmasked(value: Any, what: str) -> None:
    """Refuses a masked array, whose mask would be lost, and a list of them."""
    if isinstance(value, np.ma.MaskedArray) or (isinstance(value, list) and any(isinstance(part, np.ma.MaskedArray) for part in value)):
        raise TypeError(f"{what} must be a plain array, but is a masked one: say what its masked entries are, by filled(0.0), say")


def _summed(gradient: Vector) -> Vector:
    return gradient if gradient.ndim == 1 else gradient.sum(axis=0)


def _block(block: int | None, batched: bool) -> int:
    if block is None:
        return BATCHED_BLOCK if batched else BLOCK
    if isinstance(block, bool) or int(block) != block or block < 1:
        raise ValueError(f"block must be a whole number of samples, at least 1, but is {block!r}")
    return int(block)


def _name_of(function: object) -> str:
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}.{name}"


def _a(value: object) -> str:
    if value is None:
        return "None"
    name = "array" if isinstance(value, np.ndarray) else type(value).__name__
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name
