"""Runs."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _engine, methods
from ._oracle import Leaves, Oracle, Problem
from ._result import Result, read

#: Which share of all samples certificates may take.
SHARE = 0.5
CHECKPOINT = "checkpoint.pasta"


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
class Moment:
    """Where a run stands, for a callback. x is the last iterate."""

    step: int
    samples: int
    evaluations: int
    distance: float
    x: NDArray[np.float64]


def minimize(
    oracle: Callable[..., Any] | Oracle | Problem,
    x0: ArrayLike,
    *,
    target: float | None = None,
    budget: float | None = None,
    method: str | methods.Method = "auto",
    delta: float = 0.05,
    certificate: Kurtosis | Variance | Growth = Kurtosis(100.0),
    seed: int = 1,
    threads: int | None = None,
    callback: Callable[[Moment], object] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Result:
    """Minimises f(x) = E f(x, xi) from stochastic gradients.

    oracle
        A function ``grad(x, rng)`` or ``grad(x, rng, n)``, an :class:`Oracle` or a :class:`Problem`. It is called in this thread, one
        call at a time; what it raises is raised here.
    x0
        The start, a vector.
    target
        Stop as soon as fresh samples certify that the norm of the gradient is at most this.
    budget
        The most samples that are drawn, certificates included. A target or a budget has to be given, unless the method has an end.
    method
        "auto", which needs no constants, or one of :mod:`pasta_opt.methods` with its constants, such as
        ``pasta_opt.methods.Smooth(smoothness=3, gap=1.6, growth=9, floor=1, target=.1)``.
    delta
        The probability that a certificate may be wrong.
    certificate
        On what certificates rest: :class:`Kurtosis`, :class:`Variance` or :class:`Growth`.
    seed
        Names all randomness: the same seed gives the same bits, on any number of threads.
    threads
        Threads for the work between calls of the oracle; by default, as many as the machine has.
    callback
        Called with a :class:`Moment` after every step; the run stops when it returns something true.
    output
        A folder for a checkpoint, written every ten seconds, at the end, and when the oracle raises or Ctrl-C is pressed.
        :func:`resume` goes on from there, bit for bit.

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
    start = _vector(x0)
    samples = _budget(budget)
    if isinstance(method, str):
        method = methods.by_name(method)
    if target is None and budget is None and not method.has_end():
        raise ValueError(
            "say when to stop: target=0.1 runs until fresh samples certify that the gradient's norm is at most 0.1, "
            "budget=1_000_000 draws at most that many samples; both can be given"
        )
    leaves = Leaves(oracle, len(start))
    steps, batch = method.length(samples)
    rule = None
    if target is not None:
        rule = _rule(target, delta, certificate)
    checkpoint = None
    if output is not None:
        checkpoint = Path(output) / CHECKPOINT
        if checkpoint.exists():
            raise FileExistsError(f"{output} holds a run; go on with pasta_opt.resume({str(output)!r}, oracle), or remove it")
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
    ended = _engine.minimize(
        leaves,
        start,
        method.name(),
        method.settings(),
        steps,
        batch,
        rule,
        samples,
        _whole("seed", seed, 0, 2**64 - 1),
        _threads(threads),
        _shown(callback),
        None if checkpoint is None else str(checkpoint),
    )
    return read(ended, rule is not None)


def resume(
    output: str | os.PathLike[str],
    oracle: Callable[..., Any] | Oracle | Problem,
    *,
    budget: float | None = None,
    threads: int | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> Result:
    """Goes on with a run that was interrupted or ran out of budget, bit for bit as if it had not stopped.

    `output` is the folder that was given to :func:`minimize`; the oracle has to be the same.
    `budget` is that of the whole run, what was drawn before included. Without one only the run's own end, such as its
    certificate, ends it.
    """
    checkpoint = Path(output) / CHECKPOINT
    if not checkpoint.exists():
        raise FileNotFoundError(f"{output} holds no checkpoint of a run")
    leaves = Leaves(oracle, _engine.stored_dimension(str(checkpoint)))
    ended = _engine.resume(leaves, leaves.dim, _budget(budget), _threads(threads), _shown(callback), str(checkpoint))
    return read(ended, False)


def _rule(
    target: float, delta: float, certificate: Kurtosis | Variance | Growth
) -> tuple[float, float, float, tuple[str, list[float]]]:
    basis = {Kurtosis: "kurtosis", Variance: "variance", Growth: "growth"}.get(type(certificate))
    if basis is None:
        raise TypeError(f"certificate must be a Kurtosis, a Variance or a Growth, but is {certificate!r}")
    numbers = [_number(name, value) for name, value in vars(certificate).items()]
    return _number("target", target), _number("delta", delta), SHARE, (basis, numbers)


def _shown(callback: Callable[[Moment], object] | None) -> Callable[[int, int, int, float, NDArray[np.float64]], object] | None:
    if callback is None:
        return None
    if not callable(callback):
        raise TypeError(f"callback must be a function of a Moment, but is {callback!r}")
    return lambda *now: callback(Moment(*now))


def _vector(x0: ArrayLike) -> NDArray[np.float64]:
    try:
        array = np.asarray(x0)
    except ValueError as error:
        raise ValueError(f"x0 is no vector: {error}") from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"x0 must be a vector of real numbers, but has dtype {array.dtype}")
    if array.ndim != 1 or len(array) == 0:
        hint = "; give x0.ravel(), and reshape x in the oracle" if array.ndim > 1 else ""
        raise ValueError(f"x0 must be a vector of at least one number, but has shape {array.shape}{hint}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"x0 must be finite, but x0[{bad[0]}] is {array[bad[0]]}")
    return np.array(array, np.float64, order="C")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, but is {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, but is {value!r}") from None


def _whole(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, but is {value!r}") from None
    if isinstance(value, bool) or not least <= number <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, but is {value!r}")
    return number


def _budget(budget: float | None) -> int | None:
    if budget is None or (isinstance(budget, float) and math.isinf(budget) and budget > 0):
        return None
    return _whole("budget", budget, 1, 2**127)


def _threads(threads: int | None) -> int:
    return 0 if threads is None else _whole("threads", threads, 1, 4096)
