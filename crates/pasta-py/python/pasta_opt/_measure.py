"""What can be asked about a point or a problem without a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import _engine, methods
from ._minimize import AnyBasis, AnyOracle, _budget, _rule, bound
from ._native import _number, _threads, _whole, namespace
from ._oracle import Leaves
from ._result import Certificate, Result, certificate_of
from ._terms import AnyTerm
from ._terms import given as terms_given
from ._workers import with_workers

if TYPE_CHECKING:
    from ._workers import AnyWorkers


@with_workers
def certify(
    oracle: AnyOracle,
    x: Any,
    *,
    target: float,
    budget: float | None = None,
    delta: float = 0.05,
    certificate: AnyBasis | None = None,
    seed: int = 1,
    threads: int | None = None,
    workers: AnyWorkers | None = None,
    bounds: Any = None,
    term: AnyTerm | None = None,
    gamma: float | None = None,
) -> Certificate:
    """Bounds the gradient at a point that came from anywhere, by fresh samples, with a confidence of 1 - `delta`.

    The samples are not those of a run with the same seed. A :class:`Growth` is about the distance from x itself, so its growth does
    not matter: the variance at x is at most floor^2.
    With `bounds` or a `term`, as :func:`minimize` has them, it is the gradient mapping that is bounded, with `gamma` or one that a few samples choose. `workers` compute the
    oracle, as for :class:`Pool`.

    >>> import numpy as np, pasta_opt
    >>> found = pasta_opt.certify(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), [0.01, 0.0], target=0.1)
    >>> found.is_certified, found.bound <= 0.1
    (True, True)
    """
    oracle, point, _ = bound(oracle, x)
    rule = _rule(oracle, target, delta, certificate)
    whole = _whole("seed", seed, 0, 2**64 - 1)
    of_term = (terms_given(oracle, bounds, term, point), None if gamma is None else _number("gamma", gamma))
    text = _engine.certify(Leaves(oracle, len(point)), point, rule, _budget(budget), whole, _threads(threads), of_term)
    return certificate_of(json.loads(text))


def verify(result: Result, oracle: AnyOracle, *, threads: int | None = None, bounds: Any = None, term: AnyTerm | None = None) -> str:
    """Makes the certificate of a result again: its samples are drawn once more at the point, by their addresses, and every number is compared, bit for bit.

    Returns what was done, in a sentence; raises a ValueError with the first number that differs. It does not see how the run came to its point, or whether
    seeds were tried until one was lucky: for that, :func:`certify` the point with a seed of your own. docs/formats.md lists what is compared.
    `bounds` and `term` are those of the run.

    >>> import numpy as np, pasta_opt
    >>> def grad(x, rng, n):
    ...     return n * x + rng.normal(size=(n, 2)).sum(axis=0)
    >>> result = pasta_opt.minimize(grad, [1.0, 0.0], target=0.3)
    >>> pasta_opt.verify(result, grad).split(":")[0]
    'verified'
    """
    oracle, _, _ = bound(oracle, result.params)
    given = terms_given(oracle, bounds, term, result.x)
    return _engine.verify(Leaves(oracle, len(result.x)), result.x, result.report, result.checkpoint, _threads(threads), given)


@with_workers
def calibrate(
    oracle: AnyOracle,
    x0: Any,
    *,
    budget: int = 100_000,
    seed: int = 1,
    threads: int | None = None,
    workers: AnyWorkers | None = None,
    bounds: Any = None,
    term: AnyTerm | None = None,
) -> SimpleNamespace:
    """Measures the constants of an oracle around x0: the noise there and how it grows, the smoothness, each with an interval.

    What is found is for plans and warnings: no theorem holds because of it (docs/calibration.md). Each of `floor`, `growth`, `smoothness` and
    `ms_smoothness` has a `value` between `low` and `high`, or is None where samples cannot tell; `rays` has the noise along lines.
    With `bounds` or a `term` no point outside of them is asked for, and rays end there. `workers` are those of :func:`minimize`.

    >>> import numpy as np, pasta_opt
    >>> found = pasta_opt.calibrate(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), [1.0, 0.0], budget=10_000)
    >>> bool(0.9 < found.smoothness.value < 1.1), bool(found.floor.low < 2**0.5 < found.floor.high)
    (True, True)
    """
    oracle, start, _ = bound(oracle, x0)
    samples, whole = _whole("budget", budget, 1, 2**63), _whole("seed", seed, 0, 2**64 - 1)
    text = _engine.calibrate(Leaves(oracle, len(start)), start, samples, whole, _threads(threads), terms_given(oracle, bounds, term, start))
    return namespace(text)


def check(
    oracle: AnyOracle, x0: Any, *, seed: int = 1, threads: int | None = None, bounds: Any = None, term: AnyTerm | None = None
) -> SimpleNamespace:
    """Says whether an oracle can be believed, from some hundreds of samples at and near x0: what every run does briefly before its first step.

    `is_believable`, `sentences`, one for each slip that was found, and `slips` with their numbers: answers that are not finite, a generator of its own or
    something kept from one call to the next, a mean where the sum belongs, a difference that is not the difference, a seed that is ignored, a loss that does
    not belong to the gradient, as a whole or along some of its coordinates (docs/check.md). `slopes` has the losses against the gradients along random directions; `has_noise` and `samples` say what they say.

    >>> import pasta_opt
    >>> found = pasta_opt.check(lambda x, rng, n: (a := x - rng.normal(size=(n, 2))).mean(axis=0), [3.0, 0.0])
    >>> found.is_believable, found.slips[0].kind
    (False, 'mean-for-sum')
    >>> pasta_opt.check(lambda x, rng, n: (x - rng.normal(size=(n, 2))).sum(axis=0), [3.0, 0.0]).is_believable
    True
    """
    oracle, start, _ = bound(oracle, x0)
    whole = _whole("seed", seed, 0, 2**64 - 1)
    given = terms_given(oracle, bounds, term, start)
    return namespace(_engine.check(Leaves(oracle, len(start)), start, whole, _threads(threads), given))


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
    return namespace(text)


def plan(recipe: str, **constants: float) -> SimpleNamespace:
    """What a run would do, promise and cost, before it draws a sample: what ``pasta plan RECIPE --json`` prints, by the same names.

    `recipe` is its name, such as "smooth"; constants are keywords (`lambda_` is lambda), and so is `budget`, which stands in for the target.

    >>> import pasta_opt
    >>> planned = pasta_opt.plan("smooth", smoothness=3, gap=1.6, growth=9, floor=1, target=0.1)
    >>> planned.K, round(planned.samples)
    (1920, 254870709120)
    >>> pasta_opt.plan("smooth", smoothness=3, gap=1.6, growth=9, floor=1, budget=1e6).constants.target > 0.1
    True
    """
    if not isinstance(recipe, str):
        raise TypeError(f'recipe must be the name of a recipe, such as "smooth", but is {recipe!r}')
    flags = [(name.rstrip("_").replace("_", "-"), _number(name, value)) for name, value in constants.items()]
    return namespace(_engine.plan(recipe, flags))


@with_workers
def forecast(
    oracle: AnyOracle,
    x0: Any,
    *,
    target: float | str,
    method: str | methods.Method = "auto",
    samples: int = _engine.PILOT,
    delta: float = 0.05,
    certificate: AnyBasis | None = None,
    seed: int = 1,
    threads: int | None = None,
    workers: AnyWorkers | None = None,
    bounds: Any = None,
    term: AnyTerm | None = None,
    gamma: float | None = None,
) -> SimpleNamespace:
    """What a run to a certified target will probably cost, from a pilot of a few cheap runs with at most `samples` samples, and no more than a tenth of
    what is forecast where a range allows that.

    By the names of ``pasta plan --pilot --json``: `forecast` has `low`, `middle` and `high`, or is None, and then `forecast_silent` says why; `pilot`
    is the pilot that was run; `worst_case` and `lower_bound` are those of a recipe. A forecast, not a bound (docs/forecast.md). `bounds`, `term`, `gamma` and `workers` are as in :func:`minimize`.

    >>> import pasta_opt
    >>> found = pasta_opt.forecast(lambda x, rng, n: n * x + rng.normal(size=(n, 2)).sum(axis=0), [3.0, 0.0], target=0.05, samples=20_000)
    >>> found.forecast.low < found.forecast.middle < found.forecast.high
    True
    """
    oracle, start, _ = bound(oracle, x0)
    method = methods.chosen(method)
    rule = _rule(oracle, target, delta, certificate)
    count, whole = _whole("samples", samples, 1, 2**63), _whole("seed", seed, 0, 2**64 - 1)
    leaves = Leaves(oracle, len(start))
    of_term = (terms_given(oracle, bounds, term, start), None if gamma is None else _number("gamma", gamma))
    text = _engine.forecast(leaves, start, method.described(None), rule, count, whole, _threads(threads), of_term)
    found = namespace(text)
    found.method = method.name()
    found.worst_case = found.lower_bound = None
    if not method.has_steps() and method.has_end():
        planned = namespace(_engine.plan(method.name(), list(method.settings().items())))
        found.worst_case, found.lower_bound = float(planned.samples), getattr(planned, "lower_bound", None)
    return found


@with_workers
def compare(
    oracle: AnyOracle,
    x0: Any,
    *,
    target: float | str | None = None,
    budget: int | None = None,
    methods: Sequence[str] = (),
    seeds: int = 10,
    grid: bool = False,
    delta: float = 0.05,
    certificate: AnyBasis | None = None,
    seed: int = 1,
    threads: int | None = None,
    workers: AnyWorkers | None = None,
    bounds: Any = None,
    term: AnyTerm | None = None,
    gamma: float | None = None,
) -> SimpleNamespace:
    """Runs methods on one problem, untuned and from the same start: how soon each reaches a target, how far it comes, how often it fails.

    What ``pasta compare --json`` prints, by the same names: `methods`, best first, each with `method`, `batch`, `gradient`, `samples_to_target`,
    `diverged`, `worse` and its `runs` (docs/compare.md). Where there are only samples, a run has reached the target when that is certified, and
    final gradients are measured by fresh samples that nobody pays for. With `bounds` or a `term`, gradient mappings take the place of gradients. `workers` are those of :func:`minimize`.

    >>> import pasta_opt
    >>> def grad(x, rng, n):
    ...     return n * x + rng.normal(size=(n, 2)).sum(axis=0)
    >>> found = pasta_opt.compare(grad, [3.0, 0.0], budget=2_000, methods=["auto", "dog"], seeds=2)
    >>> sorted({row.method for row in found.methods}), found.judged_by
    (['auto', 'dog'], 'samples')
    """
    if target is None and budget is None:
        raise ValueError("say when runs end: target=0.1, or budget=100_000 samples, or both")
    names = [methods] if isinstance(methods, str) else list(methods)
    known = [row["name"] for row in _engine.methods()]
    for name in names:
        if name not in known:
            raise ValueError(f"no method is called {name!r}; methods are named: {', '.join(known)}")
    oracle, start, _ = bound(oracle, x0)
    rule = None if target is None else _rule(oracle, target, delta, certificate)
    most = _whole("budget", 1_000_000 if budget is None else budget, 1, 2**63)
    leaves = Leaves(oracle, len(start))
    runs, first = _whole("seeds", seeds, 1, 10_000), _whole("seed", seed, 0, 2**64 - 1)
    of_term = (terms_given(oracle, bounds, term, start), None if gamma is None else _number("gamma", gamma))
    return namespace(_engine.compare(leaves, start, names, bool(grid), rule, most, runs, first, _threads(threads), of_term))
