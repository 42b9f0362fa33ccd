"""An oracle that other processes compute."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._oracle import Computed, Leaves, Oracle, Problem

Vector = NDArray[np.float64]

#: Tasks for each process and question: few enough to be cheap, enough for none to wait long for another.
SHARES = 4

_oracle: Any = None
_leaves: dict[int, Leaves] = {}


def _begin(oracle: Any) -> None:
    """In a worker."""
    global _oracle
    _oracle = oracle
    # Ctrl-C reaches the process that called; that one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgrp"):
        # A group of its own: what the oracle starts ends with the worker.
        os.setpgrp()
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    """In a thread of a worker: ends it, with its group, when the process that called is gone, however it went.

    The signal that Linux has for this (PR_SET_PDEATHSIG) would end the worker before it could end what it has started, and comes when the thread ends that made the pool.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _answer(dim: int, asked: Sequence[tuple[Any, ...]]) -> list[Vector]:
    """In a worker: the sums of some blocks."""
    if dim not in _leaves:
        _leaves[dim] = Leaves(_oracle, dim)
    return [_leaves[dim].sums(*leaf) for leaf in asked]


class Pool(Computed):
    """An oracle whose blocks are computed by processes of :mod:`multiprocessing`, for every function that takes an oracle.

    For samples that take long in Python itself: a block of samples costs some hundred microseconds more than in this process. Every block has the generator that it
    has without a pool, and sums are added in the same order, so the bits are those of one process, for any number of workers. An exception travels here
    with its traceback; a worker that dies is a ``concurrent.futures.process.BrokenProcessPool``, and a run with an output folder goes on from its checkpoint.
    Workers end when this process ends, also if it is killed, and then so does what the oracle has started, unless that began a process group of its own.

    oracle
        A function, an :class:`Oracle` or a :class:`Problem`. Unless processes are forked it must be picklable: a function at the top level of a module.
    workers
        How many processes; by default as many as there are processors.

    >>> import numpy as np, pasta_opt
    >>> def grad(x, rng, n):
    ...     return n * x + rng.normal(size=(n, 2)).sum(axis=0)
    >>> alone = pasta_opt.minimize(grad, [3.0, 0.0], budget=5_000)
    >>> with pasta_opt.Pool(grad, workers=2) as pool:                              # doctest: +SKIP
    ...     together = pasta_opt.minimize(pool, [3.0, 0.0], budget=5_000)
    >>> together.x.tobytes() == alone.x.tobytes()                                  # doctest: +SKIP
    True
    """

    def __init__(self, oracle: Any, workers: int | None = None) -> None:
        if isinstance(oracle, Pool) or not (callable(oracle) or isinstance(oracle, (Oracle, Problem))):
            raise TypeError(f"a pool computes a function, an Oracle or a Problem of Python, not {oracle!r}")
        count = (os.cpu_count() or 1) if workers is None else workers
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"workers must be a whole number from 1, but is {workers!r}")
        context = multiprocessing.get_context()
        if context.get_start_method() != "fork":
            try:
                pickle.dumps(oracle)
            except Exception as error:
                raise TypeError(f"the oracle cannot be sent to another process, define it at the top level of a module: {error}") from error
        self.oracle = oracle
        self.workers = count
        self._executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(oracle,))
        # All processes begin now: the engine's threads are none that a fork could copy.
        self._executor.submit(int).result()

    def sums(self, dim: int, asked: Sequence[tuple[Any, ...]]) -> list[Vector]:
        """The sums of some blocks, in their order."""
        size = -(-len(asked) // (SHARES * self.workers))
        tasks = [self._executor.submit(_answer, dim, asked[i : i + size]) for i in range(0, len(asked), size)]
        try:
            return [sums for task in tasks for sums in task.result()]
        finally:
            for task in tasks:
                task.cancel()

    def close(self) -> None:
        """Ends the processes."""
        self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
