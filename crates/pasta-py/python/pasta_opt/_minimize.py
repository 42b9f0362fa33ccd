"""Runs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _engine, methods
from ._native import Native, _number, _threads, _whole
from ._oracle import Computed, Leaves, Oracle, Problem, Streamed, Structured, _a, _unmasked, unless_streamed
from ._progress import Moment, shown
from ._result import CHECKPOINT, Result, read
from ._stream import on_streams
from ._terms import AnyTerm
from ._terms import given as terms_given
from ._workers import with_workers

if TYPE_CHECKING:
    from ._workers import AnyWorkers

#: Which share of all samples certificates may take.
SHARE = 0.5

#: What can be asked for samples.
AnyOracle = Callable[..., Any] | Oracle | Problem | Native | Structured | Computed | Streamed


@dataclass(frozen=True)
class Kurtosis:
    """A certificate assumes that the fourth moment of the noise is at most `most` times the square of its variance."""

    most: float


@dataclass(frozen=True)
class Variance:
    """It is declared that the variance of a stochastic gradient at the point is at most `most`."""

    most: float


@dataclass(frozen=True)
class Growth:
    """It is declared that the variance at x is at most ``growth**2 * |x - x0|**2 + floor**2``."""

    growth: float
    floor: float


@dataclass(frozen=True)
class Exact:
    """A pass over all rows of a table: nothing is assumed, and nothing can be wrong but rounding."""


AnyBasis = Kurtosis | Variance | Growth | Exact


class Beginning(NamedTuple):
    """What the engine is told about a run."""

    x0: NDArray[np.float64]
    method: tuple[str, dict[str, float], int, int]
    rule: tuple[float | str, float, float, tuple[str, list[float]]] | None
    budget: int | None
    seed: int
    check: bool
    pilot: int
    threads: int
    on_nan: str
    no_limit: bool
    term: _engine.Term | None
    project: bool
    gamma: float | None
    round_cost: int


def beginning(
    oracle: object,
    x0: NDArray[np.float64],
    *,
    target: float | str | None,
    budget: float | None,
    method: str | methods.Method,
    delta: float,
    certificate: AnyBasis | None,
    seed: int,
    check: bool,
    pilot: int | None,
    threads: int | None,
    on_nan: str = "stop",
    no_limit: bool = False,
    terms: _engine.Term | None = None,
    project_start: bool = False,
    gamma: float | None = None,
    round_cost: int = 0,
) -> Beginning:
    """Reads the arguments of :func:`minimize`; refuses a run without an end."""
    samples, way = _budget(budget), methods.chosen(method)
    if target is None and samples is None and not way.has_end():
        raise ValueError(
            "say when to stop: target=0.1 runs until fresh samples certify that the gradient's norm is at most 0.1, "
            "budget=1_000_000 draws at most that many samples; both can be given"
        )
    if target is None and (certificate is not None or pilot not in (None, 0, _engine.FIRST_FORECAST)):
        given = "certificate= says on what a certificate rests" if certificate is not None else "pilot= forecasts what a certificate will cost"
        raise ValueError(f"{given}, but none is asked for: give a target=")
    rule = None if target is None else _rule(oracle, target, delta, certificate)
    whole, forecast = _whole("seed", seed, 0, 2**64 - 1), _whole("pilot", 0 if pilot is None else pilot, 0, 2**63)
    if on_nan not in ("stop", "skip"):
        raise ValueError(f'on_nan must be "stop" or "skip", but is {on_nan!r}')
    if gamma is not None and (terms is None or target is None):
        raise ValueError("gamma= is for certificates of problems with bounds= or term=: give one of them, and a target=")
    ending = (on_nan, bool(no_limit), terms, bool(project_start), None if gamma is None else _number("gamma", gamma))
    cost = _whole("round_cost", round_cost, 0, 10**9)
    return Beginning(x0, way.described(samples), rule, samples, whole, bool(check), forecast, _threads(threads), *ending, cost)


@with_workers
@on_streams
def minimize(
    oracle: AnyOracle,
    x0: Any,
    *,
    target: float | str | None = None,
    budget: float | None = None,
    method: str | methods.Method = "auto",
    delta: float = 0.05,
    certificate: AnyBasis | None = None,
    seed: int = 1,
    threads: int | None = None,
    callback: Callable[[Moment], object] | None = None,
    progress: bool | Callable[[Moment], object] | None = None,
    check: bool = True,
    pilot: int | None = _engine.FIRST_FORECAST,
    on_nan: str = "stop",
    no_limit: bool = False,
    workers: AnyWorkers | None = None,
    output: str | os.PathLike[str] | None = None,
    bounds: Any = None,
    term: AnyTerm | None = None,
    project_start: bool = False,
    gamma: float | None = None,
    round_cost: int = 0,
) -> Result:
    """Minimises f(x) = E f(x, xi) from stochastic gradients.

    oracle
        A function ``grad(x, rng)`` or ``grad(x, rng, n)``, an :class:`Oracle`, a :class:`Problem`, rows that come once (:class:`Stream`), an oracle of the library
        (:class:`Native`) or of JAX (:func:`pasta_opt.jax.oracle`). It is called in this thread, one call at a time; what it raises is
        raised here.
    x0
        The start, a vector or, for one coordinate, a number; for JAX, a pytree.
    target
        Stop as soon as fresh samples certify that the norm of the gradient is at most this: a number, or a share of the gradient at the start such
        as "1%", which the run measures first (``result.of_start``).
    budget
        The most samples that are drawn, certificates included. A target or a budget has to be given, unless the method has an end.
    method
        "auto", which needs no constants, or one of :mod:`pasta_opt.methods` with its constants, such as
        ``pasta_opt.methods.Smooth(smoothness=3, gap=1.6, growth=9, floor=1, target=.1)``.
    delta
        The probability that a certificate may be wrong.
    certificate
        On what certificates rest: :class:`Kurtosis`, of 100 unless given, :class:`Variance` or :class:`Growth`; on a table, :class:`Exact`.
    seed
        Names all randomness: the same seed gives the same bits, on any number of threads.
    threads
        Threads for the work between calls of the oracle; by default, as many as the machine has.
    callback
        Called with a :class:`Moment` after every step; the run stops when it returns something true.
    progress
        True shows a line on stderr that says where the run stands; a function is called with a :class:`Moment` instead. Both at most ten
        times a second.
    check
        Whether some fifty samples before the first step have to show that the oracle can be believed; they count, under the role "check". What is
        wrong is a ``ValueError`` that names it (:func:`check` says more); where all samples are equal, a warning says so. Oracles of the library are never checked, nor is anything with
        a budget below 100; the check takes a fifth of the budget at most.
    pilot
        With a target, the run forecasts its own cost (``result.forecast``) once it has drawn this many samples, and takes none for it; None for no
        forecast.
    on_nan
        What to do where some answers at a point are NaN or infinite and others are not: "stop" the run and say so (``stop.kind`` is
        "not-finite"), or "skip" those samples, which biases the result and voids a certificate. Both are counted (``ledger.not_finite``).
    no_limit
        With a target and no budget a run ends where the target is not within reach (``stop.kind`` is "hopeless"); True lets it go on.
    workers
        Who computes the oracle, as for :class:`Pool`: a number of processes, a ``concurrent.futures.Executor`` or a function like `map`. The bits are the same.
    output
        A folder for a checkpoint, written every ten seconds, at the end, and when the oracle raises or Ctrl-C is pressed.
        :func:`resume` goes on from there, bit for bit.
    bounds
        Bounds on the coordinates, as SciPy has them: a pair (lower, upper) for each, with None for no bound, or a ``scipy.optimize.Bounds``.
        The oracle is never asked outside of them.
    term
        A convex term h such as :class:`L1` or :class:`Simplex`, a list of them, or an object with a prox of its own (:class:`OwnTerm`): f + h is minimised. With bounds or a term, `target` is for the norm of
        the gradient mapping (docs/terms.md), and ``certificate.gamma`` is its gamma.
    project_start
        True moves an x0 outside of what bounds and term allow to the nearest point inside; otherwise it is refused.
    gamma
        gamma of the gradient mapping; by default, about 1/L, chosen from a few samples.
    round_cost
        What a call of the oracle costs beside its samples, in samples. "auto" then asks less often and for more at once (docs/wide.md), and ``result.ledger.rounds`` counts how often.

    >>> import pasta_opt
    >>> truth = np.array([1.0, -2.0, 3.0])
    >>> def grad(x, rng, n):
    ...     a = rng.normal(size=(n, 3))
    ...     y = a @ truth + rng.normal(size=n)
    ...     return (a @ x - y) @ a
    >>> result = pasta_opt.minimize(grad, np.zeros(3), target=0.2)
    >>> result.stop.kind, result.certificate.is_certified
    ('certified', True)
    >>> bool(np.linalg.norm(result.x - truth) < 0.2)
    True
    """
    oracle, start, unflatten = bound(oracle, x0)
    aim: dict[str, Any] = {"target": target, "budget": budget, "method": method, "delta": delta, "certificate": certificate}
    aim.update(terms=terms_given(oracle, bounds, term, start), project_start=project_start, gamma=gamma, round_cost=round_cost)
    begin = beginning(oracle, start, **aim, seed=seed, check=check, pilot=pilot, threads=threads, on_nan=on_nan, no_limit=no_limit)
    leaves = Leaves(oracle, len(start))
    checkpoint = None
    if output is not None:
        checkpoint = Path(output) / CHECKPOINT
        if checkpoint.exists():
            raise FileExistsError(f"{output} holds a run; go on with pasta_opt.resume({str(output)!r}, oracle), or remove it")
        if Path(output).exists() and not Path(output).is_dir():
            raise NotADirectoryError(f"output must be a folder, but {output} is a file")
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
    shows = shown(callback, progress, begin.budget)
    ended = _engine.minimize(leaves, begin, *shows, None if checkpoint is None else str(checkpoint))
    return read(ended, unflatten)


def resume(
    output: str | os.PathLike[str],
    oracle: AnyOracle,
    x0: Any = None,
    *,
    budget: float | None = None,
    no_limit: bool = False,
    threads: int | None = None,
    callback: Callable[[Moment], object] | None = None,
    progress: bool | Callable[[Moment], object] | None = None,
    bounds: Any = None,
    term: AnyTerm | None = None,
) -> Result:
    """Goes on with a run that was interrupted, asked to stop or ran out of budget, bit for bit as if it had not stopped.

    `output` is the folder that was given to :func:`minimize` or :meth:`Result.save`; the oracle has to be the same, and so have `bounds` and `term`. An oracle of JAX needs the
    structure of its parameters: give the same `x0`, whose values do not matter.
    `budget` is that of the whole run, what was drawn before included; a run that ended as "hopeless" goes on with one, or with `no_limit`. Without one only the run's own end, such as its
    certificate, ends it; a run that has none is refused. What was planned when the run began does not grow with the budget: a run that had ended as
    planned is handed out as it was, and ``stop.meaning`` says so; start anew for more.
    """
    unless_streamed(oracle, "a run that is resumed draws samples again")
    checkpoint = Path(output) / CHECKPOINT
    if not checkpoint.exists():
        raise FileNotFoundError(f"{output} holds no checkpoint of a run")
    unflatten = None
    if isinstance(oracle, Structured):
        if x0 is None:
            raise TypeError("an oracle of JAX needs x0, for the structure of its parameters")
        oracle, start, unflatten = oracle.bind(x0)
        if len(start) != _engine.stored_dimension(str(checkpoint)):
            stored = _engine.stored_dimension(str(checkpoint))
            raise ValueError(f"x0 must have the structure of the run's start, which had {stored} numbers, but it has {len(start)}")
    leaves = Leaves(oracle, _engine.stored_dimension(str(checkpoint)))
    samples = _budget(budget)
    terms = terms_given(oracle, bounds, term, np.zeros(_engine.stored_dimension(str(checkpoint))))
    ended = _engine.resume(leaves, (samples, bool(no_limit)), _threads(threads), *shown(callback, progress, samples), str(checkpoint), terms)
    return read(ended, unflatten)


def bound(oracle: Any, x0: Any) -> tuple[Any, NDArray[np.float64], Callable[[NDArray[np.float64]], Any] | None]:
    """The oracle of vectors, the start as one, and the way back from vectors, if there is one."""
    if isinstance(oracle, Structured):
        return oracle.bind(oracle.point() if x0 is None else x0)
    return oracle, _vector(x0), None


def _rule(
    oracle: object, target: float | str, delta: float, certificate: AnyBasis | None
) -> tuple[float | str, float, float, tuple[str, list[float]]]:
    if certificate is None:
        certificate = Exact() if isinstance(oracle, Native) and oracle._native.is_table else Kurtosis(100.0)
    basis = {Kurtosis: "kurtosis", Variance: "variance", Growth: "growth", Exact: "exact"}.get(type(certificate))
    if basis is None:
        raise TypeError(f"certificate must be a Kurtosis, a Variance, a Growth or Exact(), but is {certificate!r}")
    numbers = [_number(name, value) for name, value in vars(certificate).items()]
    return _target(target), _number("delta", delta), SHARE, (basis, numbers)


def _target(target: float | str) -> float | str:
    """A number, or a share of the gradient at the start such as "1%"."""
    return target if isinstance(target, str) and target.rstrip().endswith("%") else _number("target", target)


def _vector(x0: Any) -> NDArray[np.float64]:
    _unmasked(x0, "x0")
    try:
        array = np.asarray(x0)
    except ValueError as error:
        raise ValueError(f"x0 is no vector: {error}") from None
    if array.dtype.kind not in "fiu":
        what = f"has dtype {array.dtype}" if array.ndim else f"is {_a(x0)}"
        raise TypeError(f"x0 must be a vector of real numbers, but {what}")
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or len(array) == 0:
        hint = "; give x0.ravel(), and reshape x in the oracle" if array.ndim > 1 else ""
        raise ValueError(f"x0 must be a vector of at least one number, but has shape {array.shape}{hint}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"x0 must be finite, but x0[{bad[0]}] is {array[bad[0]]}")
    return np.array(array, np.float64, order="C")


def _budget(budget: float | None) -> int | None:
    if budget is None or (isinstance(budget, float) and math.isinf(budget) and budget > 0):
        return None
    return _whole("budget", budget, 1, 2**127)
