"""An oracle that other processes compute."""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import os
import pickle
import secrets
import signal
import sys
import threading
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._oracle import Computed, Leaves, Oracle, Problem

if TYPE_CHECKING:
    from ._workers import AnyWorkers

Vector = NDArray[np.float64]

#: Tasks for each worker and question: few enough to be cheap, enough for none to wait long for another.
SHARES = 4
#: Tasks of a question where nobody says how many workers there are.
TASKS = 128
#: How often a task is given again that was lost with its worker.
REPEATS = 3
#: The bytes of an oracle that every task may carry. A larger one is sent to a worker that says that it does not have it.
CARRIED = 16_384
#: Oracles that each thread of a worker keeps.
KEPT = 4

#: A task: the hash of the oracle's pickle, the pickle or None, the dimension, and the arguments of :meth:`Leaves.sums` for some blocks.
Task = tuple[str, bytes | None, int, Sequence[tuple[Any, ...]]]

#: Oracles that need no pickle: of the process that forked this one, or of a pool of threads in it.
_given: dict[str, Any] = {}
_here = threading.local()


def _begin(key: str, oracle: Any) -> None:
    """In a process of the pool's own."""
    _given[key] = oracle
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


def answer(task: Task) -> list[Vector] | Raised | None:
    """In a worker: the sums of some blocks; None if it has not seen the oracle yet and the task does not carry it.

    What the oracle raises is part of the answer: whatever else an executor raises is the executor's own, and the task can be given again.
    """
    key, data, dim, asked = task
    try:
        leaves = _leaves(key, data, dim)
        if leaves is None:
            return None
        for points, *_ in asked:
            for x in points:
                # As in the process that called; a copy from a pickle could be written to.
                x.setflags(write=False)
        return [leaves.sums(*leaf) for leaf in asked]
    except Exception as error:
        return Raised(error)


def _leaves(key: str, data: bytes | None, dim: int) -> Leaves | None:
    """The oracle of a hash: a copy for each thread, since an oracle answers one call at a time."""
    kept: OrderedDict[tuple[str, int], Leaves] = _here.__dict__.setdefault("kept", OrderedDict())
    found = kept.get((key, dim))
    if found is None:
        if key not in _given and data is None:
            return None
        found = Leaves(_given[key] if key in _given else pickle.loads(data or b""), dim)
        kept[key, dim] = found
        while len(kept) > KEPT:
            kept.popitem(last=False)
    kept.move_to_end((key, dim))
    return found


class RemoteTraceback(Exception):
    """Where an exception was raised in a worker, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class Raised:
    """What the oracle raised in a worker."""

    def __init__(self, error: Exception) -> None:
        self.error, self.text = error, "".join(traceback.format_exception(error))

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            pickle.loads(pickle.dumps(self.error))
            error: Exception = self.error
        except Exception:
            error = RuntimeError(f"{type(self.error).__name__}: {self.error}")
        return _raised, (error, self.text)

    def back(self) -> Exception:
        """The exception, with the traceback that it had in its own process."""
        if self.error.__traceback__ is None:
            self.error.__cause__ = RemoteTraceback(self.text)
        return self.error


def _raised(error: Exception, text: str) -> Raised:
    raised = Raised(error)
    raised.text = text
    return raised


class Lost:
    """A task that came to no answer, since a worker died or an executor failed."""

    def __init__(self, error: Exception) -> None:
        self.error = error


Answers = list[list[Vector] | Raised | Lost | None]


class Crew(Protocol):
    """Those who answer tasks."""

    #: How many tasks a question is cut into.
    tasks: int

    def answers(self, tasks: list[Task]) -> Answers:
        """An answer for each task; the first exception of the oracle ends it."""

    def renew(self) -> None:
        """Replaces those that have died."""

    def close(self) -> None:
        """Ends what was begun for this pool."""


class Processes:
    """Processes of this pool's own."""

    def __init__(self, count: int, key: str, oracle: Any) -> None:
        self.tasks, self._count, self._given, self._lock = SHARES * count, count, (key, oracle), threading.Lock()
        self.executor = self._begun()

    def _begun(self) -> ProcessPoolExecutor:
        executor = ProcessPoolExecutor(self._count, mp_context=multiprocessing.get_context(), initializer=_begin, initargs=self._given)
        # All processes begin now: before a run, the engine's threads are none that a fork could copy.
        executor.submit(int).result()
        return executor

    def answers(self, tasks: list[Task]) -> Answers:
        return _submitted(self.executor, tasks)

    def renew(self) -> None:
        # Of several threads that share the pool, the first one does it.
        with self._lock:
            try:
                self.executor.submit(int).result()
            except Exception:
                warnings.warn("a worker died: its blocks are computed again, by new workers, with the same bits", RuntimeWarning, stacklevel=2)
                self.executor.shutdown(wait=False, cancel_futures=True)
                self.executor = self._begun()

    def close(self) -> None:
        self.executor.shutdown(cancel_futures=True)


class Borrowed:
    """An executor that somebody else has begun, and will end."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.tasks = executor, TASKS
        count = getattr(executor, "_max_workers", None)
        if isinstance(count, int):
            self.tasks = SHARES * count

    def answers(self, tasks: list[Task]) -> Answers:
        return _submitted(self.executor, tasks)

    def renew(self) -> None:
        # A pool of processes that is broken stays so; loky hands out a new one in its place. Others replace workers by themselves.
        make = getattr(sys.modules[type(self.executor).__module__], "get_reusable_executor", None)
        if make is not None:
            self.executor = make(max_workers=getattr(self.executor, "_max_workers", None))

    def close(self) -> None:
        pass


class Mapped:
    """A function that maps, of whatever pool."""

    tasks = TASKS

    def __init__(self, mapping: Any) -> None:
        self._map = mapping

    def answers(self, tasks: list[Task]) -> Answers:
        try:
            told: Answers = list(self._map(answer, tasks))
        except Exception as error:
            return [Lost(error)] * len(tasks)
        if len(told) != len(tasks):
            raise TypeError(f"workers must map as the built-in map does, but gave {len(told)} answers to {len(tasks)} tasks")
        for one in told:
            _unless_raised(one)
        return told

    def renew(self) -> None:
        pass

    def close(self) -> None:
        pass


def _submitted(executor: Executor, tasks: list[Task]) -> Answers:
    waiting: list[Future[list[Vector] | Raised | None]] = []
    told: Answers = []
    broken: Exception | None = None
    try:
        for task in tasks:
            try:
                waiting.append(executor.submit(answer, task))
            except Exception as error:
                broken = error
                break
        for future in waiting:
            try:
                one: list[Vector] | Raised | Lost | None = future.result()
            except Exception as error:
                one = Lost(error)
            _unless_raised(one)
            told.append(one)
        if broken is not None:
            told += [Lost(broken)] * (len(tasks) - len(told))
        return told
    finally:
        for future in waiting:
            future.cancel()


def _unless_raised(one: object) -> None:
    if isinstance(one, Raised):
        raise one.back()


class Pool(Computed):
    """An oracle whose blocks are computed by workers, for every function that takes an oracle.

    For samples that take long in Python itself: a block of samples costs some hundred microseconds more than in this process. Every block has the generator that it
    has without a pool, and sums are added in the same order, so the bits are those of one process, for any workers and any number of them. An exception travels here
    with its traceback. A block whose worker dies is given to another, three times at most: the bits stay the same, and so does the count of samples.

    oracle
        A function, an :class:`Oracle` or a :class:`Problem`. Where it has to travel it must be picklable: a function at the top level of a module, or, with the package cloudpickle
        (which comes with loky, dask and Ray), any function. A worker keeps the oracles that it was sent, by the hash of the pickle.
    workers
        One of

        * a number of processes of :mod:`multiprocessing`; by default as many as there are processors. They need no pickle where processes are forked. One that dies is replaced, with a
          ``RuntimeWarning``. All end when this process ends, also if it is killed, and then so does what the oracle has started, unless that began a process group of its own.
        * a ``concurrent.futures.Executor``: of processes or threads, loky's, dask's (``client.get_executor()``), mpi4py's ``MPIPoolExecutor``. It is not shut down. Whether a worker that dies
          is replaced is up to it: dask and loky do, a ``ProcessPoolExecutor`` is then broken for good, which is raised. Threads of this process share your oracle, which has to be safe to call from several at once.
        * a function that maps as the built-in `map` does, what SciPy takes as ``workers``: ``ray.util.multiprocessing.Pool().map``, say.

    >>> import numpy as np, pasta_opt
    >>> def grad(x, rng, n):
    ...     return n * x + rng.normal(size=(n, 2)).sum(axis=0)
    >>> alone = pasta_opt.minimize(grad, [3.0, 0.0], budget=5_000)
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as threads:
    ...     together = pasta_opt.minimize(grad, [3.0, 0.0], budget=5_000, workers=threads)
    >>> together.x.tobytes() == alone.x.tobytes()
    True
    """

    def __init__(self, oracle: Any, workers: AnyWorkers | None = None) -> None:
        if isinstance(oracle, Pool) or not (callable(oracle) or isinstance(oracle, (Oracle, Problem))):
            raise TypeError(f"a pool computes a function, an Oracle or a Problem of Python, not {oracle!r}")
        workers = (os.cpu_count() or 1) if workers is None else workers
        self.oracle = oracle
        self.workers = workers
        self._key, self._data = secrets.token_hex(16), None
        self._crew: Crew
        if isinstance(workers, int):
            if isinstance(workers, bool) or workers < 1:
                raise ValueError(f"workers must be a whole number from 1, but is {workers!r}")
            if multiprocessing.get_context().get_start_method() != "fork":
                _pickled(oracle, pickle.dumps)
            self._crew = Processes(workers, self._key, oracle)
        elif isinstance(workers, ThreadPoolExecutor):
            _given[self._key] = oracle
            self._crew = Borrowed(workers)
        elif isinstance(workers, Executor) or callable(workers):
            self._data = _pickled(oracle, _dumps)
            self._key = hashlib.sha256(self._data).hexdigest()
            self._crew = Borrowed(workers) if isinstance(workers, Executor) else Mapped(workers)
        else:
            hint = "; give client.get_executor()" if callable(getattr(workers, "get_executor", None)) else ""
            raise TypeError(f"workers must be a number of processes, a concurrent.futures.Executor or a function like map, but is {workers!r}{hint}")

    def sums(self, dim: int, asked: Sequence[tuple[Any, ...]]) -> list[Vector]:
        """The sums of some blocks, in their order."""
        size = -(-len(asked) // self._crew.tasks)
        shares = [asked[i : i + size] for i in range(0, len(asked), size)]
        found: list[list[Vector] | None] = [None for _ in shares]
        lost = [0 for _ in shares]
        carried = self._data if self._data is not None and len(self._data) <= CARRIED else None
        wants_oracle: set[int] = set()
        while left := [i for i, sums in enumerate(found) if sums is None]:
            tasks: list[Task] = [(self._key, self._data if i in wants_oracle else carried, dim, shares[i]) for i in left]
            is_lost = False
            for i, told in zip(left, self._crew.answers(tasks), strict=True):
                if isinstance(told, list):
                    found[i] = told
                elif isinstance(told, Lost):
                    is_lost = True
                    lost[i] += 1
                    if lost[i] > REPEATS:
                        raise told.error
                elif i in wants_oracle:
                    raise RuntimeError("a worker does not keep the oracle that it was sent")
                else:
                    wants_oracle.add(i)
            if is_lost:
                self._crew.renew()
        return [sums for told in found for sums in told or []]

    def close(self) -> None:
        """Ends the processes that the pool has begun; an executor of yours it leaves alone."""
        self._crew.close()
        _given.pop(self._key, None)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _dumps(oracle: Any) -> bytes:
    """A pickle for other machines. cloudpickle, where it is installed, also takes functions of a script and of a notebook by value."""
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        return pickle.dumps(oracle)
    data: bytes = cloudpickle.dumps(oracle)
    return data


def _pickled(oracle: Any, dumps: Any) -> bytes:
    try:
        data: bytes = dumps(oracle)
    except Exception as error:
        raise TypeError(f"the oracle cannot be sent to another process, define it at the top level of a module: {error}") from error
    return data
