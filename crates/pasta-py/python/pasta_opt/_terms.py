"""Terms: constraints and convex penalties h beside f, so that f + h is minimised."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._native import Native

#: One number for all coordinates, or one for each.
Numbers = float | Sequence[float]


@dataclass(frozen=True)
class Term:
    """What all terms have. `coordinates` is a text such as "0..10" (0 to 9) or a list of numbers; without it a term is about all."""

    kind: ClassVar[str] = ""

    def spec(self) -> dict[str, Any]:
        """The term as plain data, as a table ``[[term]]`` of a problem file has it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **{name: _plain(value) for name, value in given.items() if value is not None}}


@dataclass(frozen=True)
class Box(Term):
    """Bounds: ``lower <= x <= upper``. Infinite ends are none."""

    kind: ClassVar[str] = "box"
    lower: Numbers | None = None
    upper: Numbers | None = None
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class NonNegative(Term):
    """``x >= 0``."""

    kind: ClassVar[str] = "non-negative"
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class L1(Term):
    """``sum(weight * abs(x))``."""

    kind: ClassVar[str] = "l1"
    weight: Numbers
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class ElasticNet(Term):
    """``sum(l1 * abs(x) + l2 * x**2 / 2)``."""

    kind: ClassVar[str] = "elastic-net"
    l1: Numbers
    l2: Numbers
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class LogBarrier(Term):
    """``-sum(weight * log(x))``: positive coordinates."""

    kind: ClassVar[str] = "log"
    weight: Numbers | None = None
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class Ball(Term):
    """``norm(x - centre) <= radius``."""

    kind: ClassVar[str] = "ball"
    radius: float
    centre: Numbers | None = None
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class Simplex(Term):
    """``x >= 0`` with ``sum(x) == total``, 1 unless given."""

    kind: ClassVar[str] = "simplex"
    total: float | None = None
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class GroupL2(Term):
    """The sum over groups of ``weight * norm(x[group])``; `groups` lists them, or `size` makes them of consecutive coordinates."""

    kind: ClassVar[str] = "group-l2"
    weight: Numbers
    groups: Sequence[Sequence[int]] | None = None
    size: int | None = None
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class TotalVariation(Term):
    """``sum(weight * abs(diff(x)))``."""

    kind: ClassVar[str] = "total-variation"
    weight: Numbers
    coordinates: str | Sequence[int] | None = None


@dataclass(frozen=True)
class Polyhedron(Term):
    """``a @ x <= b`` and ``a_equal @ x == b_equal``, for small a."""

    kind: ClassVar[str] = "polyhedron"
    a: Sequence[Sequence[float]] | None = None
    b: Sequence[float] | None = None
    a_equal: Sequence[Sequence[float]] | None = None
    b_equal: Sequence[float] | None = None
    coordinates: str | Sequence[int] | None = None


class OwnTerm(Protocol):
    """A convex term of your own: any object with these two methods.

    ``value(x)`` is h(x), ``math.inf`` outside of the domain; ``prox(v, gamma)`` is the minimiser z of ``value(z) + sum((z - v)**2) / (2 * gamma)``, a new array.
    With an attribute ``diagonal = True``, gamma may be an array with a number for each coordinate; without, methods that need that call prox repeatedly.
    An attribute ``name`` is what results call it.

    Its laws are checked on some dozens of points when it is given: the prox is in the domain, firmly non-expansive, and that of the value.
    """

    def value(self, x: NDArray[np.float64]) -> float:
        """h(x)."""

    def prox(self, v: NDArray[np.float64], gamma: Any) -> NDArray[np.float64]:
        """The minimiser."""


#: What `term=` takes.
AnyTerm = Term | OwnTerm | Sequence[Term]


def _plain(value: Any) -> Any:
    """Numbers for JSON, which knows no infinity: that is a word."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, (bool, int, np.integer)):
        return int(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError("a number of a term is nan")
    return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")


def _bounds(bounds: Any, dim: int) -> Box:
    """SciPy's bounds: pairs (lower, upper) with None for no bound, or an object with ``lb`` and ``ub``."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        ends = [np.broadcast_to(np.asarray(end, np.float64), (dim,)).tolist() for end in (bounds.lb, bounds.ub)]
        return Box(*ends)
    pairs = list(bounds)
    if len(pairs) != dim:
        raise ValueError(f"bounds must be {dim} pairs (lower, upper), one for each coordinate of x0, but there are {len(pairs)}")
    for i, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"each of bounds must be a pair (lower, upper), with None for no bound, but number {i} is {pair!r}")
    lower = [-math.inf if pair[0] is None else float(pair[0]) for pair in pairs]
    upper = [math.inf if pair[1] is None else float(pair[1]) for pair in pairs]
    return Box(lower, upper)


def given(oracle: Any, bounds: Any, term: AnyTerm | None, x: NDArray[np.float64]) -> _engine.Term | None:
    """What is minimised with f: bounds and terms, an object with a prox of its own, or the terms of the problem file that the oracle was read from."""
    in_file = oracle._native.term if isinstance(oracle, Native) else None
    if bounds is None and term is None:
        return in_file
    if in_file is not None:
        raise ValueError(f"the problem file has a [[term]] ({in_file.identity}): leave bounds= and term= out, or the [[term]]")
    terms: list[Any] = [] if term is None else list(term) if isinstance(term, (list, tuple)) else [term]
    own = [part for part in terms if not isinstance(part, Term)]
    if not own:
        parts = terms if bounds is None else [*terms, _bounds(bounds, len(x))]
        return _engine.terms(json.dumps([part.spec() for part in parts]), len(x))
    if not (callable(getattr(own[0], "value", None)) and callable(getattr(own[0], "prox", None))):
        hint = "or an object with the methods value(x) and prox(v, gamma)"
        raise TypeError(f"term must be a term such as pasta_opt.L1(0.1), a list of them, {hint}, but {own[0]!r} is none")
    if len(terms) > 1 or bounds is not None:
        raise ValueError("a term with a prox of its own stands alone: put the bounds and the other terms into its value and prox")
    name = str(getattr(own[0], "name", type(own[0]).__qualname__))
    return _engine.own_term(own[0], name, bool(getattr(own[0], "diagonal", False)), x)
