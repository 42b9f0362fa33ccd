"""All methods, each with its constants or settings as keywords.

Recipes (`Smooth` to `HorizonSgd`) are planned from constants of the problem, end by themselves, and come with a theorem's promise.
The others take `steps` and `batch`; without `steps` they use up the budget.

>>> import pasta_opt
>>> plan = pasta_opt.methods.Smooth(smoothness=3, gap=1.6, growth=9, floor=1, target=0.1)
>>> pasta_opt.minimize(lambda x, rng: x, [1.0], method=plan, budget=1000).stop.kind
'out-of-budget'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from . import _engine
from ._native import _number

#: A run that something else stops.
ENDLESS = 2**63


class Method:
    """What all methods have in common."""

    def name(self) -> str:
        """Its name in the library's table, the program and files."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(self).__name__).lower()

    def settings(self) -> dict[str, float]:
        """What is set, by the names of the table."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name.replace("_", "-"): _real(self, name, value) for name, value in given.items() if value is not None}

    def length(self, budget: int | None) -> tuple[int, int]:
        """How many steps of how many samples."""
        return ENDLESS, 1

    def described(self, budget: int | None) -> tuple[str, dict[str, float], int, int]:
        """What the engine is told: name, settings, steps and their samples."""
        return self.name(), self.settings(), *self.length(budget)

    def has_end(self) -> bool:
        """Whether it ends without a target or a budget."""
        return True

    def has_steps(self) -> bool:
        """Whether it takes `steps` and `batch`."""
        return False


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """No constants: quasi-Newton rounds beside a long average."""

    def has_end(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Exact(Method):
    """Second-order steps on all rows of a :class:`pasta_opt.Table`, for convex losses. No constants; it ends by itself."""


@dataclass(frozen=True, kw_only=True)
class Universal(Method):
    """No constants, and a theorem: SGD with every step size at once, to a certificate. Needs a target."""

    def has_end(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Smooth(Method):
    """Theorem 3: smooth, not convex."""

    smoothness: float
    gap: float
    growth: float
    floor: float
    target: float
    variance: float | None = None


@dataclass(frozen=True, kw_only=True)
class SmoothConvex(Method):
    """Theorem 4: smooth and convex."""

    smoothness: float
    distance: float
    growth: float
    floor: float
    target: float
    variance: float | None = None


@dataclass(frozen=True, kw_only=True)
class LipschitzConvex(Method):
    """Theorem 5: convex with bounded subgradients, kinks allowed."""

    lipschitz: float
    distance: float
    growth: float
    floor: float
    target: float
    variance: float | None = None


@dataclass(frozen=True, kw_only=True)
class MeanSquareSmooth(Method):
    """Theorem 7: smooth sample by sample, not convex."""

    ms_smoothness: float
    gap: float
    growth: float
    floor: float
    target: float


@dataclass(frozen=True, kw_only=True)
class Pl(Method):
    """Theorem 8: smooth, gradient dominated (Polyak-Lojasiewicz), one minimiser."""

    smoothness: float
    mu: float
    gap: float
    growth: float
    floor: float
    target: float


@dataclass(frozen=True, kw_only=True)
class StarConvex(Method):
    """Theorem 9: smooth, convex towards its minimiser."""

    smoothness: float
    mu: float
    gap: float
    growth: float
    floor: float
    target: float


@dataclass(frozen=True, kw_only=True)
class WeaklyConvex(Method):
    """Theorem 10: weakly convex with bounded subgradients, kinks allowed."""

    rho: float
    lambda_: float
    lipschitz: float
    gap: float
    growth: float
    floor: float
    target: float

    def settings(self) -> dict[str, float]:
        """What is set; `lambda` is a word of Python."""
        return {name.rstrip("-"): value for name, value in super().settings().items()}


@dataclass(frozen=True, kw_only=True)
class SmoothAnchored(Method):
    """Remark after Theorem 10: smooth with a bounded gradient, by anchored epochs."""

    smoothness: float
    lipschitz: float
    gap: float
    growth: float
    floor: float
    target: float


@dataclass(frozen=True, kw_only=True)
class HorizonSgd(Method):
    """Plain SGD tuned to its horizon: smooth, one sample a step."""

    smoothness: float
    gap: float
    growth: float
    floor: float
    target: float


@dataclass(frozen=True, kw_only=True)
class _Stepped(Method):
    steps: int | None = None
    batch: int = 1

    def settings(self) -> dict[str, float]:
        """What is set besides steps and batch."""
        return {name: value for name, value in super().settings().items() if name not in ("steps", "batch")}

    def length(self, budget: int | None) -> tuple[int, int]:
        for name in ("steps", "batch"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or int(value) != value or not 1 <= value <= ENDLESS):
                raise ValueError(f"{self.name()}: {name} must be a whole number, at least 1, but is {value!r}")
        batch = int(self.batch)
        if self.steps is None:
            return (ENDLESS if budget is None else max(1, budget // batch)), batch
        return int(self.steps), batch

    def has_end(self) -> bool:
        return self.steps is not None

    def has_steps(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class Sgd(_Stepped):
    """x - eta g."""

    eta: float


@dataclass(frozen=True, kw_only=True)
class SgdDecaying(_Stepped):
    """x - eta/sqrt(t + 1) g."""

    eta: float


@dataclass(frozen=True, kw_only=True)
class ClippedSgd(_Stepped):
    """x - eta g min(1, threshold/|g|)."""

    eta: float
    threshold: float


@dataclass(frozen=True, kw_only=True)
class Adam(_Stepped):
    """Moments of each coordinate."""

    eta: float
    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class AdagradNorm(_Stepped):
    """Steps that shrink with the gradients seen."""

    eta: float
    offset: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class AdagradNormAveraged(_Stepped):
    """AdagradNorm, with an average of its iterates."""

    eta: float
    offset: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class Momentum(_Stepped):
    """SGD with heavy-ball momentum."""

    eta: float
    momentum: float = 0.9


@dataclass(frozen=True, kw_only=True)
class Dog(_Stepped):
    """Distance over gradients, with its average; no step size to choose."""

    radius: float = 1e-6
    epsilon: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class Prodigy(_Stepped):
    """Adam with an estimated distance as its step size; none to choose."""

    distance: float = 1e-6
    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class ScheduleFreeAdamw(_Stepped):
    """AdamW whose average takes the place of a decaying step."""

    eta: float = 0.0025
    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class ScheduleFreeSgd(_Stepped):
    """SGD whose average takes the place of a decaying step."""

    eta: float
    first: float = 0.9


@dataclass(frozen=True, kw_only=True)
class Sps(_Stepped):
    """Stochastic Polyak steps; needs losses."""

    lower: float = 0.0
    scale: float = 0.5
    most: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Halpern(_Stepped):
    """One epoch anchored at the start, beta = 1/(t + 2)."""

    eta: float


@dataclass(frozen=True, kw_only=True)
class KrasnoselskiiMann(_Stepped):
    """Every step an epoch of its own."""

    eta: float
    beta: float


@dataclass(frozen=True, kw_only=True)
class Storm(_Stepped):
    """Recursive momentum, each sample at two points."""

    eta: float
    momentum: float


def _leaves(base: type[Method]) -> list[type[Method]]:
    return [kind for below in base.__subclasses__() for kind in (below, *_leaves(below)) if kind is not _Stepped]


def chosen(method: str | Method, *others: str) -> Method:
    """The method that an argument stands for; `others` are names that it might have been."""
    if isinstance(method, str):
        return by_name(method, *others)
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise TypeError(f"method must be a method with its constants, such as {method.__name__}(..), not the class {method.__name__} itself")
    raise TypeError(f'method must be a name, such as "auto", or one of pasta_opt.methods, but is {method!r}')


def by_name(name: str, *others: str) -> Method:
    """The method of that name, where it can do without constants."""
    kinds = {kind.name(kind.__new__(kind)): kind for kind in _leaves(Method)}
    if name not in kinds:
        raise ValueError(f"no method is called {name!r}; there are {', '.join([*others, *kinds])}")
    try:
        return kinds[name]()
    except TypeError:
        row = next(row for row in _engine.methods() if row["name"] == name)
        needed = ", ".join(setting for setting, _, _, is_needed in row["settings"] if is_needed)
        raise ValueError(f"{name} needs {needed}; give method=pasta_opt.methods.{kinds[name].__name__}(...)") from None


def _real(method: Method, name: str, value: Any) -> float:
    return _number(f"{method.name()}: {name}", value)
