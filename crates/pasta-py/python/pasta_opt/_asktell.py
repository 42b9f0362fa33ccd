"""Runs that ask and are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _engine, methods
from ._minimize import AnyBasis, _vector, beginning
from ._native import _whole
from ._terms import AnyTerm
from ._terms import given as terms_given
from ._oracle import Leaves, _block, _unmasked
from ._result import Result, read

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block:
    """Some samples, and the points at which they are wanted. It can be sent to another process.

    Wanted is the sum of the gradients of `count` samples at each of `points`; with `differences`, at each but the last, less that at the last, with
    the same samples. With `losses` the sums of the losses at all points are wanted, too.
    """

    points: tuple[Vector, ...]
    count: int
    differences: bool
    losses: bool
    #: The key of numpy's Philox, and a counter: of the block, or one for each of its samples.
    key: tuple[int, int]
    counters: tuple[tuple[int, int, int, int], ...]
    #: Of all blocks of the run, counted as they were asked for.
    number: int = 0

    def rngs(self) -> list[np.random.Generator]:
        """Fresh generators: one for the block, or one for each of its samples. Make them anew for each point."""
        made = []
        for counter in self.counters:
            bits = np.random.Philox(key=np.array(self.key, np.uint64), counter=np.array(counter, np.uint64))
            made.append(np.random.Generator(bits))
        return made

    def answer(self, oracle: Any) -> Vector:
        """What :func:`minimize` would compute for this block with this oracle: to be told."""
        leaves = Leaves(oracle, len(self.points[0]))
        if leaves.batched != (len(self.counters) == 1) and self.count > 1:
            raise ValueError("the oracle takes n and the run is not batched, or the other way round: AskTell(.., batched=..)")
        counters = [list(counter) for counter in self.counters]
        return leaves.sums(list(self.points), list(self.key), counters, self.count, self.differences, self.losses)


class AskTell:
    """The engine of :func:`minimize` for those who run their own loop: :meth:`ask` says which samples are wanted, :meth:`tell` takes their sums.

    The keywords are those of :func:`minimize`. `losses` says whether losses will be told, `batched` whether a block has one generator (of at most
    256 samples, or `block`) or one for each of its samples (of at most 8), `pathwise` what it says of an :class:`Oracle`. The same seed and answers give the bits of :func:`minimize`.

    >>> import numpy as np, pasta_opt
    >>> run = pasta_opt.AskTell([1.0, -1.0], budget=5_000)
    >>> while (blocks := run.ask()) is not None:
    ...     answers = []
    ...     for block in blocks:
    ...         noise = block.rngs()[0].normal(size=(block.count, 2)).sum(axis=0)
    ...         sums = [block.count * x + noise for x in block.points]
    ...         answers.append([x - sums[-1] for x in sums[:-1]] if block.differences else sums)
    ...     run.tell(answers)
    >>> run.result().stop.kind
    'planned-end'

    :meth:`take`, :meth:`give` and :meth:`put_back` are for several blocks out at a time, which come back in any order.
    """

    def __init__(
        self,
        x0: ArrayLike,
        *,
        target: float | str | None = None,
        budget: float | None = None,
        method: str | methods.Method = "auto",
        delta: float = 0.05,
        certificate: AnyBasis | None = None,
        seed: int = 1,
        threads: int | None = None,
        check: bool = True,
        losses: bool = False,
        batched: bool = True,
        pathwise: bool = True,
        block: int | None = None,
        name: str = "ask and tell",
        bounds: Any = None,
        term: AnyTerm | None = None,
        project_start: bool = False,
        gamma: float | None = None,
        round_cost: int = 0,
    ) -> None:
        start = _vector(x0)
        aim: dict[str, Any] = {"target": target, "budget": budget, "method": method, "delta": delta, "certificate": certificate}
        aim.update(terms=terms_given(None, bounds, term, start), project_start=project_start, gamma=gamma, round_cost=round_cost)
        begin = beginning(None, start, **aim, seed=seed, check=check, pilot=0, threads=threads)
        size = _block(block, batched)
        self._blocks: list[Block] = []
        self._result: Result | None = None
        identity = f"{name}, {len(start)} coordinates, blocks of {size}"
        self._run = _engine.Asking(identity, bool(losses), size, bool(batched), bool(pathwise), begin)

    def ask(self) -> list[Block] | None:
        """The blocks whose sums are wanted now; None when the run has ended. Asked again before :meth:`tell`, the same."""
        leaves = self._run.ask()
        if leaves is None:
            return None
        self._blocks = [_read(*leaf) for leaf in leaves]
        return self._blocks

    def tell(self, answers: Iterable[Any]) -> None:
        """Takes the sums of all blocks, in the order of :meth:`ask`.

        Each is an array of as many rows as there are sums wanted, or what :meth:`Block.answer` returns; where losses are wanted, a pair (losses, sums).
        """
        told = list(answers)
        if len(told) == len(self._blocks):
            told = [self._flat(answer, block) for answer, block in zip(told, self._blocks, strict=True)]
        else:
            told = [np.zeros(0) for _ in told]
        self._run.tell(told)
        self._blocks = []

    def take(self, most: int | None = None) -> list[Block] | None:
        """Up to `most` blocks that nobody works on (all by default); None when the run has ended.

        The list is empty where the run waits for blocks that are out: :meth:`give` one of them, and take again. With nothing out it waits until the run wants something.

        >>> import pasta_opt
        >>> oracle, out = pasta_opt.Oracle(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), losses=False), []
        >>> run = pasta_opt.AskTell([1.0, -1.0], budget=5_000)
        >>> while (blocks := run.take(3)) is not None:
        ...     out += blocks
        ...     block = out.pop()                              # whichever is ready first
        ...     run.give(block, block.answer(oracle))
        >>> run.result().x.tobytes() == pasta_opt.minimize(oracle, [1.0, -1.0], budget=5_000).x.tobytes()
        True
        """
        leaves = self._run.take(2**32 if most is None else _whole("most", most, 1, 2**32))
        return None if leaves is None else [_read(*leaf) for leaf in leaves]

    def give(self, block: Block, answer: Any) -> None:
        """Takes the sums of one block, in whatever order blocks come back; an answer is what :meth:`tell` takes for a block."""
        self._run.give(block.number, self._flat(answer, block))

    def put_back(self, block: Block) -> None:
        """Says that a block which was taken will not be answered, since its worker died: :meth:`take` hands it out again."""
        self._run.put_back(block.number)

    def stop(self) -> None:
        """Ends the run: the next :meth:`ask` returns None."""
        self._run.stop()

    def result(self) -> Result:
        """What the run came to, once :meth:`ask` has returned None."""
        if self._result is None:
            self._result = read(self._run.result())
        return self._result

    def _flat(self, answer: Any, block: Block) -> Vector:
        points, dim = len(block.points), len(block.points[0])
        rows = points - block.differences
        if not (block.losses and isinstance(answer, tuple)):
            whole = _real(answer, "an answer")
            # A wrong number of numbers is counted by the engine.
            if whole.size == rows * dim and whole.ndim > 1 and whole.shape != (rows, dim):
                raise ValueError(f"the sums of a block must have shape {(rows, dim)}, a row for each sum, but have shape {whole.shape}")
            return whole.reshape(-1)
        if len(answer) != 2:
            raise ValueError(f"an answer with losses is a pair (losses, sums), but has {len(answer)} parts")
        losses, sums = _real(answer[0], "the losses"), _real(answer[1], "the sums")
        if losses.size != points or losses.ndim > 1:
            raise ValueError(f"an answer with losses is a pair (losses, sums), and there are {points} losses, but the first part has shape {losses.shape}")
        if sums.shape not in ((rows, dim), (rows * dim,)):
            raise ValueError(f"an answer with losses is a pair (losses, sums), and sums have shape {(rows, dim)}, but the second part has shape {sums.shape}")
        return np.concatenate([sums.reshape(-1), losses.reshape(-1)])


def _read(number: int, leaf: tuple[Any, ...]) -> Block:
    points, key, counters, count, differences, losses = leaf
    return Block(tuple(points), count, differences, losses, (key[0], key[1]), tuple((a, b, c, d) for a, b, c, d in counters), number)


def _real(value: Any, what: str) -> Vector:
    _unmasked(value, what)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{what} is no array: {error}") from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be an array of real numbers, but has dtype {array.dtype}")
    return array.astype(np.float64)
