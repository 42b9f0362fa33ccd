"""Bounds and terms."""

from __future__ import annotations

import numpy as np
import pasta_opt
import pytest

CENTRE = np.array([-1.0, 2.0, 0.5])


class Seen:
    """E |x - centre - noise|^2/2, which refuses a negative coordinate, as a simulator does."""

    def __init__(self, allowed=lambda x: bool((x >= 0).all())):
        self.allowed = allowed

    def __call__(self, x, rng, n):
        if not self.allowed(x):
            raise RuntimeError(f"outside: {x}")
        return n * (x - CENTRE) + 0.5 * rng.normal(size=(n, 3)).sum(axis=0)


def test_bounds_are_those_of_scipy_and_the_oracle_never_sees_a_point_outside():
    result = pasta_opt.minimize(Seen(), np.full(3, 0.5), target=0.1, bounds=[(0, None), (0, 1), (0, None)])
    assert result.stop.kind == "certified"
    assert result.x[0] == 0 and result.x[1] == 1 and abs(result.x[2] - 0.5) < 0.1
    assert 0.5 <= result.certificate.gamma <= 1
    assert "prox(x - gamma grad f(x))" in result.certificate.statement
    assert result.term.startswith("box") and "term" in repr(result)

    class Bounds:
        lb, ub = 0.0, [np.inf, 1.0, np.inf]

    again = pasta_opt.minimize(Seen(), np.full(3, 0.5), target=0.1, bounds=Bounds())
    assert (again.x == result.x).all()


def test_terms_are_small_dataclasses():
    result = pasta_opt.minimize(Seen(lambda x: True), np.full(3, 0.5), target=0.1, term=pasta_opt.L1(0.7))
    assert result.x[2] == 0 and abs(result.x[0] + 0.3) < 0.1
    simplex = pasta_opt.minimize(Seen(), np.full(3, 1 / 3), target=0.1, term=pasta_opt.Simplex())
    assert abs(simplex.x.sum() - 1) < 1e-9 and simplex.x.min() >= 0
    with pytest.raises(TypeError, match="term must be a term"):
        pasta_opt.minimize(Seen(), np.ones(3), budget=100, term=0.1)
    with pytest.raises(ValueError, match="needs weight|missing|weight"):
        pasta_opt.minimize(Seen(), np.ones(3), budget=100, term=pasta_opt.L1(None))


def test_a_start_outside_is_refused_before_the_oracle_sees_it_or_projected():
    with pytest.raises(ValueError, match="x0 = -1 is below 0"):
        pasta_opt.minimize(Seen(), -np.ones(3), budget=1000, bounds=[(0, None)] * 3)
    result = pasta_opt.minimize(Seen(), -np.ones(3), budget=1000, bounds=[(0, None)] * 3, project_start=True)
    assert (result.x >= 0).all()
    with pytest.raises(ValueError, match="3 pairs"):
        pasta_opt.minimize(Seen(), np.ones(3), budget=1000, bounds=[(0, 1)])


def test_a_run_is_resumed_with_its_bounds_and_no_others(tmp_path):
    bounds = [(0, None)] * 3
    sgd = pasta_opt.methods.Sgd(eta=0.05, steps=5000)
    pasta_opt.minimize(Seen(), np.full(3, 0.5), target=0.1, budget=200, method=sgd, bounds=bounds, output=tmp_path / "run")
    with pytest.raises(ValueError, match="the run was started with the term"):
        pasta_opt.resume(tmp_path / "run", Seen(), budget=20_000)
    result = pasta_opt.resume(tmp_path / "run", Seen(), budget=20_000, bounds=bounds)
    assert result.x[0] == 0


def test_a_point_is_certified_with_its_gamma():
    found = pasta_opt.certify(Seen(), [0.0, 2.0, 0.5], target=0.1, bounds=[(0, None)] * 3, gamma=0.25)
    assert found.is_certified and found.gamma == 0.25
    free = pasta_opt.certify(Seen(), [0.0, 2.0, 0.5], target=0.1, budget=100_000)
    assert not free.is_certified and free.gamma is None
