"""What can be asked about a point or a problem without a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from numpy.typing import ArrayLike

from . import _engine
from ._minimize import Growth, Kurtosis, Variance, _budget, _number, _rule, _threads, _vector, _whole
from ._oracle import Leaves, Oracle, Problem
from ._result import Certificate, certificate_of


def certify(
    oracle: Callable[..., Any] | Oracle | Problem,
    x: ArrayLike,
    *,
    target: float,
    budget: float | None = None,
    delta: float = 0.05,
    certificate: Kurtosis | Variance | Growth = Kurtosis(100.0),
    seed: int = 1,
    threads: int | None = None,
) -> Certificate:
    """Bounds the gradient at a point that came from anywhere, by fresh samples, with a confidence of 1 - `delta`.

    The samples are not those of a run with the same seed. A :class:`Growth` is about the distance from x itself, so its growth does
    not matter: the variance at x is at most floor^2.

    >>> import numpy as np, pasta_opt
    >>> found = pasta_opt.certify(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), [0.01, 0.0], target=0.1)
    >>> found.is_certified, found.bound <= 0.1
    (True, True)
    """
    point = _vector(x)
    rule = _rule(target, delta, certificate)
    whole = _whole("seed", seed, 0, 2**64 - 1)
    text = _engine.certify(Leaves(oracle, len(point)), point, rule, _budget(budget), whole, _threads(threads))
    return certificate_of(json.loads(text))


def calibrate(
    oracle: Callable[..., Any] | Oracle | Problem,
    x0: ArrayLike,
    *,
    budget: int = 100_000,
    seed: int = 1,
    threads: int | None = None,
) -> SimpleNamespace:
    """Measures the constants of an oracle around x0: the noise there and how it grows, the smoothness, each with an interval.

    What is found is for plans and warnings: no theorem holds because of it (docs/calibration.md). Each of `floor`, `growth`, `smoothness` and
    `ms_smoothness` has a `value` between `low` and `high`, or is None where samples cannot tell; `rays` has the noise along lines.

    >>> import numpy as np, pasta_opt
    >>> found = pasta_opt.calibrate(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), [1.0, 0.0], budget=10_000)
    >>> bool(0.9 < found.smoothness.value < 1.1), bool(found.floor.low < 2**0.5 < found.floor.high)
    (True, True)
    """
    start = _vector(x0)
    samples, whole = _whole("budget", budget, 1, 2**63), _whole("seed", seed, 0, 2**64 - 1)
    text = _engine.calibrate(Leaves(oracle, len(start)), start, samples, whole, _threads(threads))
    found: SimpleNamespace = json.loads(text, object_hook=lambda pairs: SimpleNamespace(**pairs))
    return found


def lower_bound(
    *,
    gap: float,
    growth: float,
    floor: float,
    target: float,
    smoothness: float | None = None,
    ms_smoothness: float | None = None,
) -> SimpleNamespace:
    """The least number of samples that any zero-respecting method needs, and the instance that shows it.

    Theorem 1 for `smoothness`, Theorem 2 for `ms_smoothness`. `bound` is None where the theorem does not admit the target.

    >>> import pasta_opt
    >>> pasta_opt.lower_bound(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001).T
    8
    """
    if (smoothness is None) == (ms_smoothness is None):
        raise ValueError("lower_bound needs smoothness (Theorem 1) or ms_smoothness (Theorem 2), and not both")
    is_mean_square = smoothness is None
    given = {"smoothness": ms_smoothness if is_mean_square else smoothness, "gap": gap, "growth": growth, "floor": floor, "target": target}
    numbers = [_number(name, value) for name, value in given.items()]
    text = _engine.lower_bound(numbers[0], is_mean_square, *numbers[1:])
    found: SimpleNamespace = json.loads(text, object_hook=lambda pairs: SimpleNamespace(**pairs))
    return found
