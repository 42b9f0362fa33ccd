"""Variational inference that says when it is done.

:func:`fit` approximates a posterior on R^d by a normal distribution, N(m, C C'), with independent coordinates (``family="meanfield"``) or all
correlations (``family="fullrank"``), and stops when fresh samples certify that m and C are near the best of that family. What the numbers mean, and
which target to choose, is in docs/which-target.md.

>>> import numpy as np, pasta_opt.vi
>>> def log_density(z):                                   # of rows z, up to a constant
...     return -0.5 * (z[:, 0] ** 2 + (z[:, 1] - 3.0) ** 2 / 4.0) - 0.1 * z[:, 0] ** 4
>>> def gradient(z):
...     return -np.stack([z[:, 0] + 0.4 * z[:, 0] ** 3, (z[:, 1] - 3.0) / 4.0], axis=1)
>>> posterior = pasta_opt.vi.fit(log_density, 2, gradient=gradient, target="0.1 sd")
>>> posterior.is_certified, bool(abs(posterior.mean[1] - 3.0) < 0.2 and abs(posterior.sd[1] - 2.0) < 0.2)
(True, True)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._minimize import AnyBasis, Kurtosis, _vector, minimize
from ._native import _number, _whole
from ._oracle import Problem
from ._progress import Moment
from ._result import Certificate, Result, _table
from ._terms import LogBarrier

Vector = NDArray[np.float64]
Family = Literal["meanfield", "fullrank"]

#: Fixed draws with which the pilot fits; more for many dimensions where all correlations are fitted.
PILOT_DRAWS = 256
#: Draws over which Hessians are averaged.
HESSIAN_DRAWS = 256
#: Fresh draws that look at the fit when it is done.
LOOK_DRAWS = 10_000
#: Up to so many coordinates the control variate has a full Hessian.
FULL_HESSIAN = 300
#: Up to so many parameters an error in standard deviations is computed.
MOST_PARAMETERS = 600
#: Runs that may follow each other where the conversion into standard deviations has changed on the way.
MOST_RUNS = 3
#: The smallest share of its noise that the control variate leaves: without any noise there would be nothing to certify from.
LEAST_NOISE = 0.01
#: Samples in a call of the density.
BLOCK = 1024
#: A kurtosis that pilot draws show is assumed so many times.
KURTOSIS_MARGIN = 5.0


class Density(Protocol):
    """U = -log density at the rows of an array: values and gradients, and Hessians."""

    def both(self, z: Vector) -> tuple[Vector, Vector]: ...

    def hessians(self, z: Vector) -> Vector: ...


class NumpyDensity:
    """A density and its gradient, both functions of an array with a point in each row."""

    def __init__(self, log_density: Callable[[Vector], Any], gradient: Callable[[Vector], Any]) -> None:
        self._log_density, self._gradient = log_density, gradient

    def both(self, z: Vector) -> tuple[Vector, Vector]:
        value, gradient = np.asarray(self._log_density(z), np.float64), np.asarray(self._gradient(z), np.float64)
        if value.shape != z.shape[:1] or gradient.shape != z.shape:
            raise ValueError(
                f"log_density and gradient get an array of shape {z.shape}, a point in each row, and must return arrays of shape "
                f"{z.shape[:1]} and {z.shape}, but returned {value.shape} and {gradient.shape}"
            )
        return -value, -gradient

    def hessians(self, z: Vector) -> Vector:
        columns = []
        for j in range(z.shape[1]):
            # The cube root of the spacing balances rounding and the third derivative.
            step = 6e-6 * np.maximum(1.0, np.abs(z[:, j]))
            ahead, behind = z.copy(), z.copy()
            ahead[:, j] += step
            behind[:, j] -= step
            columns.append((self.both(ahead)[1] - self.both(behind)[1]) / (ahead[:, j] - behind[:, j])[:, None])
        hessians = np.stack(columns, axis=2)
        return (hessians + hessians.transpose(0, 2, 1)) / 2


class JaxDensity:
    """A log density written in JAX, a function of one point, in double precision."""

    def __init__(self, log_density: Callable[[Any], Any]) -> None:
        import jax  # type: ignore[import-not-found,unused-ignore]

        def negative(z: Any) -> Any:
            return -log_density(z)

        self._jax = jax
        self._both = jax.jit(jax.vmap(jax.value_and_grad(negative)))
        self._hessians = jax.jit(jax.vmap(jax.hessian(negative)))

    def double(self) -> contextlib.AbstractContextManager[Any]:
        """Double precision, which samples of differences need, whatever the rest of the program has."""
        if hasattr(self._jax, "enable_x64"):
            switched: contextlib.AbstractContextManager[Any] = self._jax.enable_x64(True)
            return switched
        from jax.experimental import enable_x64  # type: ignore[import-not-found,unused-ignore]

        older: contextlib.AbstractContextManager[Any] = enable_x64()
        return older

    def both(self, z: Vector) -> tuple[Vector, Vector]:
        with self.double():
            value, gradient = self._both(_padded(z))
            return np.asarray(value, np.float64)[: len(z)], np.asarray(gradient, np.float64)[: len(z)]

    def hessians(self, z: Vector) -> Vector:
        with self.double():
            # In parts, so that a few hundred dimensions fit into the memory.
            each = max(1, min(len(z), 10**7 // z.shape[1] ** 2))
            each = 1 << (each.bit_length() - 1)
            parts = [np.asarray(self._hessians(_padded(z[i : i + each], each)))[: len(z) - i] for i in range(0, len(z), each)]
            return np.concatenate(parts).astype(np.float64)


def _padded(z: Vector, size: int | None = None) -> Vector:
    """With copies of the first row up to a power of 4, so that few sizes are compiled."""
    size = size or 1 << 2 * (((len(z) - 1).bit_length() + 1) // 2)
    return z if len(z) == size else np.concatenate([z, np.broadcast_to(z[0], (size - len(z), z.shape[1]))])


def _density(log_density: Callable[[Any], Any], gradient: Callable[[Any], Any] | None) -> Density:
    if not callable(log_density):
        raise TypeError(f"log_density must be a function, but is {log_density!r}")
    if gradient is not None:
        return NumpyDensity(log_density, gradient)
    try:
        return JaxDensity(log_density)
    except ImportError as error:
        raise ImportError(f"a log density without gradient= is differentiated by JAX (pip install 'pasta-opt[jax]'): {error}") from error


class _Normal:
    """The parameters x of N(m, C C') as a vector: m, the diagonal of C, and for all correlations what is below it, row by row."""

    def __init__(self, family: str, d: int) -> None:
        if family not in ("meanfield", "fullrank"):
            raise ValueError(f'family must be "meanfield" or "fullrank", but is {family!r}')
        self.full, self.d = family == "fullrank", d
        self.rows, self.columns = np.tril_indices(d, -1) if self.full else (np.zeros(0, int), np.zeros(0, int))
        self.size = 2 * d + len(self.rows)

    def start(self) -> Vector:
        return np.concatenate([np.zeros(self.d), np.ones(self.d), np.zeros(len(self.rows))])

    def scale(self, x: Vector) -> Vector:
        """C."""
        c = np.diag(x[self.d : 2 * self.d])
        c[self.rows, self.columns] = x[2 * self.d :]
        return c

    def points(self, x: Vector, e: Vector) -> Vector:
        """m + C e for rows e."""
        if not self.full:
            return x[: self.d] + e * x[self.d : 2 * self.d]
        points: Vector = x[: self.d] + e @ self.scale(x).T
        return points

    def pulled(self, r: Vector, e: Vector) -> Vector:
        """The sum over rows of the gradient by x of <r, m + C e>."""
        if not self.full:
            return np.concatenate([r.sum(axis=0), np.einsum("ni,ni->i", r, e)])
        return self.of_matrix(r.sum(axis=0), r.T @ e)

    def of_matrix(self, m: Vector, c: Vector) -> Vector:
        """A vector of a part for m and a matrix for C."""
        return np.concatenate([m, np.diagonal(c), c[self.rows, self.columns]])

    def jacobian(self, e: Vector) -> Vector:
        """The derivatives of m + C e by x, for one e."""
        j = np.zeros((self.d, self.size))
        at = np.arange(self.d)
        j[at, at], j[at, self.d + at] = 1.0, e
        j[self.rows, 2 * self.d + np.arange(len(self.rows))] = e[self.columns]
        return j

    def deviations(self, x: Vector, factor: Vector) -> tuple[Vector, Vector]:
        """Standard deviations of factor @ u, and the derivatives of them and of the means by x, each over the deviation: rows of [means; deviations]."""
        c = self.scale(x)
        combined = factor @ c
        sd = np.sqrt((combined**2).sum(axis=1))
        rows = np.zeros((2 * self.d, self.size))
        rows[: self.d, : self.d] = factor / sd[:, None]
        for i in range(self.d):
            # d sd_i = <combined_i, factor_i dC> / sd_i.
            by_c = np.outer(factor[i], combined[i]) / sd[i] ** 2
            rows[self.d + i] = self.of_matrix(np.zeros(self.d), by_c)
        return sd, rows


class _Elbo(Problem):
    """f(m, C) = E U(m + C e) in the units of the pilot; the entropy is the term -sum log C_ii.

    A sample is U(u) - u'Hu/2 with the mean of u'Hu/2 added, which is known: where U is nearly quadratic, little noise is left.
    """

    def __init__(self, density: Density, normal: _Normal, centre: Vector, units: Vector, hessian: Vector, name: str, block: int) -> None:
        self.density, self.normal, self.centre, self.units, self.hessian = density, normal, centre, units, hessian
        self.name, self.block = name, block
        #: U at the centre is taken off, for shorter numbers.
        self.level = float(density.both(centre[None])[0][0])
        self.drawn = 0

    def answers(self, x: Vector, e: Vector) -> tuple[Vector, Vector]:
        """Losses and residual gradients by u, for rows e."""
        u = self.normal.points(x, e)
        value, gradient = self.density.both(self.centre + u @ self.units.T)
        hu = u @ self.hessian
        return value - self.level - (u * hu).sum(axis=1) / 2, gradient @ self.units - hu

    def known(self, x: Vector) -> tuple[float, Vector]:
        """E u'Hu/2 and its gradient."""
        m, c = x[: self.normal.d], self.normal.scale(x)
        hm, hc = self.hessian @ m, self.hessian @ c
        return float(m @ hm + (c * hc).sum()) / 2, self.normal.of_matrix(hm, hc)

    def gradient(self, x: Vector, rng: np.random.Generator, n: int) -> Vector:
        e = rng.standard_normal((n, self.normal.d))
        self.drawn += n
        return self.normal.pulled(self.answers(x, e)[1], e) + n * self.known(x)[1]

    def loss(self, x: Vector, rng: np.random.Generator, n: int) -> float:
        e = rng.standard_normal((n, self.normal.d))
        self.drawn += n
        return float(self.answers(x, e)[0].sum()) + n * self.known(x)[0]

    def noise(self, x: Vector, e: Vector) -> tuple[float, float]:
        """The variance of a stochastic gradient and its kurtosis, as rows e show them."""
        residual = self.answers(x, e)[1]
        # Of single samples: entries of C are the products r_i e_j.
        m = residual - residual.mean(axis=0)
        if self.normal.full:
            c = residual[:, self.normal.rows] * e[:, self.normal.columns]
            c = np.concatenate([residual * e, c], axis=1)
        else:
            c = residual * e
        squares = (m**2).sum(axis=1) + ((c - c.mean(axis=0)) ** 2).sum(axis=1)
        variance = float(squares.mean())
        return variance, float((squares**2).mean()) / variance**2 if variance > 0 else math.nan

    def curvature(self, x: Vector, e: Vector) -> Vector:
        """The Hessian of f at x, from rows e."""
        u = self.normal.points(x, e)
        total = np.zeros((self.normal.size, self.normal.size))
        hessians = self.density.hessians(self.centre + u @ self.units.T)
        for row, hessian in zip(e, hessians, strict=True):
            j = self.normal.jacobian(row)
            total += j.T @ (self.units.T @ hessian @ self.units) @ j
        whole: Vector = total / len(e)
        return whole


@dataclass(frozen=True)
class Bounds:
    """What |G| <= 1, to be multiplied by the bound, says about the fit, to first order. See docs/which-target.md."""

    #: The largest error of a mean or standard deviation of a coordinate, in its standard deviations.
    sd: float
    #: Twice the excess of the divergence, for the square of the bound.
    nats: float


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A normal approximation of a posterior, on R^d. Prints as a table, the verdict first."""

    family: str
    names: tuple[str, ...]
    #: m, the standard deviations, and the square root of the covariance, lower triangular.
    mean: Vector
    sd: Vector
    scale: Vector
    #: The probability of a false certificate, all runs of the fit together.
    delta: float
    #: What the target was.
    target: float | str
    #: Whether a certificate says that the target was reached.
    is_certified: bool
    #: The certificate of the gradient mapping, in the units of the pilot.
    certificate: Certificate | None
    #: The last run: its report, ledger and trace.
    result: Result
    #: No mean or standard deviation is off by more than this many standard deviations, to first order; None where that is not known.
    error_in_sd: float | None
    #: The divergence KL(q|p) is above the least of the family by at most so many nats, by `nats_by`: "curvature" (proved) or "second order".
    excess_nats: float | None
    nats_by: str | None
    #: The evidence lower bound (of the density as it was given, constants and all) and its standard error, from fresh draws.
    elbo: float
    elbo_error: float
    #: The shape of the tail of the importance weights: above .7 the family itself fits badly, however well it was fitted.
    k_hat: float
    #: Evaluations of the density: by the pilot, by all runs, and by the look at the end.
    evaluations: dict[str, int]
    #: What there is to say besides.
    notes: tuple[str, ...]
    #: The units of the pilot: z = centre + units @ u.
    centre: Vector
    units: Vector

    @property
    def cov(self) -> Vector:
        """The covariance."""
        whole: Vector = self.scale @ self.scale.T
        return whole

    def sample(self, n: int = 1000, seed: int = 0) -> Vector:
        """n draws of the approximation, one in each row."""
        rng = np.random.default_rng(_whole("seed", seed, 0, 2**64 - 1))
        draws: Vector = self.mean + rng.standard_normal((_whole("n", n, 1, 10**9), len(self.mean))) @ self.scale.T
        return draws

    def verdict(self) -> str:
        """Whether the fit is done, in a sentence."""
        certificate, confidence = self.certificate, f"{100 * (1 - self.delta):.6g} % confidence"
        if certificate is None or certificate.bound is None:
            return f"not certified: {self.result.stop.meaning}"
        bounds = []
        if self.error_in_sd is not None:
            bounds.append(f"no mean or sd is off by more than {self.error_in_sd:.2g} sd, to first order")
        if self.excess_nats is not None and isinstance(self.target, str) and "nat" in self.target:
            proved = "" if self.nats_by == "curvature" else ", to second order"
            bounds.insert(0, f"KL is at most {self.excess_nats:.2g} nats above the best of the family{proved}")
        said = "; ".join(bounds) or f"|G| <= {certificate.bound:.3g} in units of the pilot"
        if self.is_certified:
            return f"certified: {said} ({confidence})"
        return f"not certified: target {self.target}, but only this is known: {said} ({confidence})"

    def rows(self) -> list[tuple[str, str]]:
        """What is printed."""
        found = [("verdict", self.verdict())]
        shown = range(len(self.mean)) if len(self.mean) <= 12 else range(10)
        found += [(self.names[i], f"{self.mean[i]:.4g} (sd {self.sd[i]:.3g})") for i in shown]
        if len(self.mean) > len(shown):
            found.append(("..", f"{len(self.mean) - len(shown)} more"))
        found.append(("ELBO", f"{self.elbo:.6g} (standard error {self.elbo_error:.2g})"))
        quality = "good" if self.k_hat < 0.5 else "fair" if self.k_hat < 0.7 else "the family fits badly: do not trust its tails or sds"
        found.append(("k-hat", f"{self.k_hat:.2f} ({quality})"))
        if self.certificate is not None:
            found.append(("rests on", self.certificate.statement))
        cost = ", ".join(f"{name} {count:,}" for name, count in self.evaluations.items())
        found.append(("evaluations", cost))
        return found + [("note", note) for note in self.notes]

    def __repr__(self) -> str:
        return _table(self.rows())

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f'<tr><th style="text-align:left">{escape(a)}</th><td style="text-align:left">{escape(b)}</td></tr>' for a, b in self.rows()
        )
        return f"<table>{cells}</table>"


def fit(
    log_density: Callable[[Any], Any],
    start: int | ArrayLike,
    *,
    family: Family = "meanfield",
    target: float | str = "0.1 sd",
    gradient: Callable[[Any], Any] | None = None,
    curvature: float | ArrayLike | None = None,
    names: Sequence[str] | None = None,
    budget: float | None = None,
    delta: float = 0.05,
    certificate: AnyBasis | None = None,
    seed: int = 1,
    threads: int | None = None,
    progress: bool | Callable[[Moment], object] | None = None,
    block: int = BLOCK,
) -> Fit:
    """Fits N(m, C C') to a log density on R^d until fresh samples certify that the fit is done.

    log_density
        The logarithm of the posterior density, up to a constant: a function of one point, written in JAX; with `gradient`, a function in NumPy of an
        array with a point in each row, which returns a number for each.
    start
        The dimension, to start at 0, or a point where the density is not tiny.
    family
        "meanfield", independent coordinates, or "fullrank".
    target
        When the fit is done. "0.1 sd": no mean and no standard deviation is off by more than a tenth of a standard deviation, to first order. "0.01 nats": the divergence
        is at most so much above the least of the family. A number: a bound on the gradient mapping in the units of the pilot, where posterior standard deviations are about 1. "1%": of the gradient mapping at the pilot's fit. Errors are
        against the best member of the *family*; how good that is, ``k_hat`` says.
    gradient
        The gradients of the log density at the rows of an array, in NumPy.
    curvature
        Declares that -log density has at least this curvature everywhere: a number, one for each coordinate, or a matrix. Then a target in nats is proved.
    names
        Names of the coordinates.
    budget, delta, certificate, seed, threads, progress
        As in :func:`pasta_opt.minimize`. Unless `certificate` is given, a kurtosis of 100 is assumed, or five times that of pilot draws if that is more.
    block
        The most points of a call of the density.

    A pilot first fits the family to some hundred fixed draws, by L-BFGS (scipy). Its fit is the start, and the unit of every coordinate. Then
    :func:`pasta_opt.minimize` minimises the negative evidence lower bound over m and C, with -sum log C_ii as the term and a quadratic control variate.
    """
    center = np.zeros(_whole("start", start, 1, 10**6)) if isinstance(start, (int, np.integer)) else _vector(start)
    d = len(center)
    normal = _Normal(family, d)
    aim = _aim(target, curvature, normal)
    delta = _number("delta", delta)
    labels = tuple(names) if names is not None else tuple(f"z{i}" for i in range(d))
    if len(labels) != d:
        raise ValueError(f"names must have a name for each of the {d} coordinates, but has {len(labels)}")
    whole = _whole("seed", seed, 0, 2**64 - 1)
    density = _Counted(_density(log_density, gradient))
    rng = np.random.default_rng([whole, 0x7669])

    centre, units = _pilot(density, normal, center, rng)
    problem, kurtosis = _problem(density, normal, centre, units, rng, f"vi, {family}", block)
    basis = certificate if certificate is not None else Kurtosis(max(100.0, _round_up(KURTOSIS_MARGIN * kurtosis)))
    pilot = density.count
    counts = {"pilot": pilot}

    x, notes = normal.start(), []
    with_bounds = normal.size <= MOST_PARAMETERS
    draws = rng.standard_normal((HESSIAN_DRAWS, d))
    hessian = problem.curvature(x, draws) if with_bounds else None
    gamma = _gamma(hessian if hessian is not None else problem.hessian)
    lowest = _lowest(curvature, units)
    result: Result
    for run in range(1, MOST_RUNS + 1):
        epsilon = target if aim is None else _epsilon(aim, problem, x, hessian, gamma, lowest)
        # Where the conversion changes on the way there is another run: their certificates share delta.
        share = delta if aim is None else delta / (run * (run + 1))
        left = None if budget is None else max(1, int(budget) - problem.drawn)
        given: dict[str, Any] = {"target": epsilon, "budget": left, "delta": share, "certificate": basis, "gamma": gamma}
        given.update(seed=(whole + run - 1) % 2**64, threads=threads, progress=progress, pilot=None)
        result = minimize(problem, x, term=LogBarrier(coordinates=f"{d}..{2 * d}"), **given)
        x = result.x
        if with_bounds:
            hessian = problem.curvature(x, rng.standard_normal((HESSIAN_DRAWS, d)))
        said = result.certificate
        reached = said is not None and said.is_certified
        found: tuple[float | None, float | None, str | None] = (None, None, None)
        if said is not None and said.bound is not None:
            found = _meaning(problem, x, hessian, gamma, said.bound, lowest)
        if aim is None or not reached or _is_within(aim, found):
            break
        if budget is not None and problem.drawn >= budget:
            break
    certified = reached and (aim is None or _is_within(aim, found))
    counts["runs"] = density.count - pilot
    e = rng.standard_normal((LOOK_DRAWS, d))
    elbo, error, k_hat, seen = _look(problem, x, e)
    counts["look"] = density.count - sum(counts.values())
    if isinstance(basis, Kurtosis) and seen > basis.most:
        certified = False
        notes.append(f"void: fresh draws show a kurtosis of {seen:.3g}, more than the {basis.most:.3g} assumed; certificate=pasta_opt.Kurtosis({_round_up(5 * seen):.6g}) may do")
    scale = units @ normal.scale(x)
    return Fit(
        family=family,
        names=labels,
        mean=centre + units @ x[:d],
        sd=np.sqrt((scale**2).sum(axis=1)),
        scale=scale,
        delta=delta,
        target=target,
        is_certified=bool(certified),
        certificate=result.certificate,
        result=result,
        error_in_sd=found[0],
        excess_nats=found[1],
        nats_by=found[2],
        elbo=elbo,
        elbo_error=error,
        k_hat=k_hat,
        evaluations=counts,
        notes=tuple(notes),
        centre=centre,
        units=units,
    )


class _Counted:
    """A density that counts the points at which it is evaluated; a Hessian counts as a point for each coordinate."""

    def __init__(self, density: Density) -> None:
        self._density, self.count = density, 0

    def both(self, z: Vector) -> tuple[Vector, Vector]:
        self.count += len(z)
        return self._density.both(z)

    def hessians(self, z: Vector) -> Vector:
        self.count += z.size
        return self._density.hessians(z)


def _aim(target: float | str, curvature: Any, normal: _Normal) -> tuple[str, float] | None:
    """A target in standard deviations or nats; None for the others."""
    if not isinstance(target, str) or target.rstrip().endswith("%"):
        return None
    words = target.split()
    if len(words) != 2 or words[1] not in ("sd", "nat", "nats"):
        raise ValueError(f'target must be a number, or a text such as "0.1 sd", "0.01 nats" or "1%", but is {target!r}')
    value = float(words[0])
    if not 0 < value < math.inf:
        raise ValueError(f"target must be positive and finite, but is {target!r}")
    unit = "sd" if words[1] == "sd" else "nats"
    if normal.size > MOST_PARAMETERS and (unit == "sd" or curvature is None):
        raise ValueError(
            f"a target in {unit} needs the Hessian of {normal.size} parameters, and {MOST_PARAMETERS} are the most: "
            "give a number, such as 0.1, in units of about one standard deviation"
        )
    return unit, value


def _pilot(density: Density, normal: _Normal, start: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """The centre and units that fit fixed draws best: independent coordinates first, then, if asked for, all correlations."""
    d = normal.d
    narrow = _Normal("meanfield", d)
    e = _standardised(rng, PILOT_DRAWS, d)
    if not np.isfinite(density.both(start[None])[0]).all():
        raise ValueError("the log density is not finite at the start: give a start where it is")
    x = _fitted(density, narrow, start, np.eye(d), np.concatenate([np.zeros(d), np.full(d, math.log(0.1))]), e)
    centre, units = start + x[:d], np.diag(np.exp(x[d:]))
    if not normal.full:
        return centre, units
    e = _standardised(rng, max(PILOT_DRAWS, 8 * d), d)
    hessian = np.zeros((d, d))
    for part in np.array_split(e[: max(64, d)], 8):
        hessian += density.hessians(centre + part @ units.T).sum(axis=0) / max(64, d)
    values, vectors = np.linalg.eigh(units @ hessian @ units)
    covariance = (vectors / np.clip(values, 1e-3, 1e3)) @ vectors.T
    units = units @ np.linalg.cholesky(covariance)
    x = _fitted(density, normal, centre, units, np.zeros(normal.size), e)
    x[d : 2 * d] = np.exp(x[d : 2 * d])
    return centre + units @ x[:d], units @ normal.scale(x)


def _standardised(rng: np.random.Generator, n: int, d: int) -> Vector:
    """Draws in pairs of opposite sign, of variance 1."""
    e = rng.standard_normal((n // 2, d))
    e = np.concatenate([e, -e])
    scaled: Vector = e / np.sqrt((e**2).mean(axis=0))
    return scaled


def _fitted(density: Density, normal: _Normal, centre: Vector, units: Vector, x: Vector, e: Vector) -> Vector:
    """The minimiser, with logarithms in the place of the diagonal of C, of the negative bound over the fixed draws e."""
    try:
        from scipy.optimize import minimize as lbfgs  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError(f"pasta_opt.vi needs scipy for its pilot: {error}") from error
    d = normal.d

    def objective(y: Vector) -> tuple[float, Vector]:
        x = y.copy()
        with np.errstate(all="ignore"):
            x[d : 2 * d] = np.exp(y[d : 2 * d])
            value, gradient = density.both(centre + normal.points(x, e) @ units.T)
            total = normal.pulled(gradient @ units, e) / len(e)
            total[d : 2 * d] = total[d : 2 * d] * x[d : 2 * d] - 1.0
            f = float(value.mean()) - float(y[d : 2 * d].sum())
        if not (math.isfinite(f) and np.isfinite(total).all()):
            return 1e300, np.zeros_like(y)
        return f, total

    found = lbfgs(objective, x, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "maxfun": 2000, "maxcor": 20})
    best: Vector = np.asarray(found.x, np.float64)
    return best


def _problem(
    density: Density, normal: _Normal, centre: Vector, units: Vector, rng: np.random.Generator, name: str, block: int
) -> tuple[_Elbo, float]:
    """The problem in the pilot's units with its control variate, and the kurtosis that draws show."""
    d, x = normal.d, normal.start()
    e = rng.standard_normal((HESSIAN_DRAWS, d))
    hessian = np.eye(d)
    if d <= FULL_HESSIAN:
        mean = density.hessians(centre + e @ units.T).mean(axis=0)
        hessian = units.T @ mean @ units
    problem = _Elbo(density, normal, centre, units, np.zeros((d, d)), name, block)
    fresh = rng.standard_normal((8 * HESSIAN_DRAWS, d))
    plain, kurtosis = problem.noise(x, fresh)
    problem.hessian = hessian
    variance, controlled = problem.noise(x, fresh)
    if not variance < plain:
        problem.hessian = np.zeros((d, d))
    elif variance < LEAST_NOISE**2 * plain:
        problem.hessian = (1.0 - LEAST_NOISE) * hessian
        kurtosis = problem.noise(x, fresh)[1]
    else:
        kurtosis = controlled
    return problem, kurtosis


def _gamma(hessian: Vector) -> float:
    """gamma of the gradient mapping: about 1/L, to two digits, so that it is easy to say."""
    largest = float(np.linalg.eigvalsh(hessian)[-1])
    return float(f"{1.0 / max(largest, 1e-3):.1e}")


def _lowest(curvature: Any, units: Vector) -> float | None:
    """The least curvature in the pilot's units, from what is declared."""
    if curvature is None:
        return None
    declared = np.asarray(curvature, np.float64)
    d = len(units)
    if declared.ndim == 0:
        declared = float(declared) * np.eye(d)
    elif declared.shape == (d,):
        declared = np.diag(declared)
    if declared.shape != (d, d) or not np.isfinite(declared).all():
        raise ValueError(f"curvature must be a number, {d} numbers or a matrix of {d} x {d}, all finite, but has shape {declared.shape}")
    least = float(np.linalg.eigvalsh(units.T @ ((declared + declared.T) / 2) @ units)[0])
    if least <= 0:
        raise ValueError("curvature must be positive in every direction: leave it out where it is not known")
    return least


def _steps(problem: _Elbo, x: Vector, gamma: float, bound: float) -> Vector:
    """Factors J with |grad F| <= |J G|, coordinate by coordinate, wherever |G| <= bound: 1 + gamma/(c c+) on the diagonal of C, 1 elsewhere."""
    d, c = problem.normal.d, x[problem.normal.d : 2 * problem.normal.d]
    least = c - gamma * bound
    factors = np.ones(problem.normal.size)
    factors[d : 2 * d] = np.where(least > 0, 1.0 + gamma / (c * np.where(least > 0, least, 1.0)), math.inf)
    return factors


def _conversion(problem: _Elbo, x: Vector, hessian: Vector, gamma: float, bound: float) -> Bounds | None:
    """The errors of the fit for a unit of the bound; None where f + h is not convex at x, as far as the Hessian says."""
    d, factors = problem.normal.d, _steps(problem, x, gamma, bound)
    if not np.isfinite(factors).all():
        return None
    whole = hessian.copy()
    diagonal = np.arange(d, 2 * d)
    whole[diagonal, diagonal] += 1.0 / x[d : 2 * d] ** 2
    if np.linalg.eigvalsh(whole)[0] <= 1e-8:
        return None
    inverse = np.linalg.inv(whole)
    _, rows = problem.normal.deviations(x, problem.units)
    sd = float(np.sqrt((((rows @ inverse) * factors) ** 2).sum(axis=1)).max())
    nats = float(np.linalg.eigvalsh(factors[:, None] * inverse * factors)[-1])
    return Bounds(sd, nats)


def _epsilon(aim: tuple[str, float], problem: _Elbo, x: Vector, hessian: Vector | None, gamma: float, lowest: float | None) -> float:
    """The bound on the gradient mapping that gives what is aimed at, less a tenth for what changes on the way."""
    if hessian is not None and (aim[0] == "sd" or lowest is None) and _conversion(problem, x, hessian, gamma, 0.0) is None:
        raise ValueError(
            f"the negative ELBO is not convex where the pilot came to, so an error cannot be given in {aim[0]}: "
            "give a number as the target, another start, or the other family"
        )
    # What a bound gives grows with it.
    low, high = -20.0, 2.0
    for _ in range(40):
        middle = (low + high) / 2
        if _is_within(aim, _meaning(problem, x, hessian, gamma, math.exp(middle), lowest)):
            low = middle
        else:
            high = middle
    return float(f"{0.9 * math.exp(low):.2e}")


def _meaning(
    problem: _Elbo, x: Vector, hessian: Vector | None, gamma: float, bound: float, lowest: float | None
) -> tuple[float | None, float | None, str | None]:
    """What a bound says about the fit: error in standard deviations, excess in nats, and by what."""
    found = None if hessian is None else _conversion(problem, x, hessian, gamma, bound)
    sd = None if found is None else found.sd * bound
    if lowest is not None:
        rate = float(_steps(problem, x, gamma, bound).max())
        if math.isfinite(rate):
            return sd, (rate * bound) ** 2 / (2 * lowest), "curvature"
    return (sd, None, None) if found is None else (sd, found.nats * bound**2 / 2, "second order")


def _is_within(aim: tuple[str, float], found: tuple[float | None, float | None, str | None]) -> bool:
    value = found[0] if aim[0] == "sd" else found[1]
    return value is not None and value <= aim[1]


def _look(problem: _Elbo, x: Vector, e: Vector) -> tuple[float, float, float, float]:
    """From fresh draws at the fit: the bound on the evidence and its error, k-hat, and the kurtosis of the noise."""
    losses, _ = problem.answers(x, e)
    d = problem.normal.d
    known, _ = problem.known(x)
    log_units = float(np.log(np.abs(np.diagonal(problem.units))).sum())
    log_scale = float(np.log(x[d : 2 * d]).sum()) + log_units
    entropy = log_scale + d * (1 + math.log(2 * math.pi)) / 2
    elbo = -(float(losses.mean()) + known + problem.level) + entropy
    # Weights p/q, up to a constant: the control variate is put back.
    u = problem.normal.points(x, e)
    log_weights = -(losses + ((u @ problem.hessian) * u).sum(axis=1) / 2) + (e**2).sum(axis=1) / 2
    return elbo, float(losses.std(ddof=1)) / math.sqrt(len(e)), _k_hat(log_weights), problem.noise(x, e)[1]


def _k_hat(log_weights: Vector) -> float:
    """The shape of a generalised Pareto distribution fitted to the largest weights (Zhang and Stephens 2009)."""
    ordered = np.sort(log_weights - log_weights.max())
    tail = min(len(ordered) // 5, int(3 * math.sqrt(len(ordered))))
    above = np.exp(ordered[-tail:]) - math.exp(ordered[-tail - 1])
    if not above[-1] > 0 or above[-1] < 1e-12:
        return -math.inf
    quarter = max(above[max(0, int(tail / 4 + 0.5) - 1)], 1e-300)
    points = 30 + int(math.sqrt(tail))
    grid = 1.0 / above[-1] + (1.0 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))) / (3.0 * quarter)
    shapes = np.log1p(-grid[:, None] * above).mean(axis=1)
    likelihoods = tail * (np.log(-grid / shapes) - shapes - 1.0)
    weights = np.exp(likelihoods - likelihoods.max())
    at = float((grid * weights).sum() / weights.sum())
    shape = float(np.log1p(-at * above).mean())
    # Towards 1/2, with the weight of ten observations.
    return (shape * tail + 5.0) / (tail + 10.0)


def _round_up(value: float) -> float:
    """To two digits, upwards."""
    if not (math.isfinite(value) and value > 0):
        return 100.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
