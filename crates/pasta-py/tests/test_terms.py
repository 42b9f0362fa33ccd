"""Bounds and terms."""

from __future__ import annotations

import math

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
    with pytest.raises(TypeError, match="term must be a term|value.x. and prox"):
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


def test_bounds_that_are_no_pairs_are_named_and_a_range_is_coordinates():
    for wrong in (None, (0, 1, 2), "01", 3):
        with pytest.raises(ValueError, match="number 1 is"):
            pasta_opt.minimize(Seen(), np.full(3, 0.5), budget=1000, bounds=[(0, 1), wrong, (0, 1)])
    free = Seen(lambda x: True)
    result = pasta_opt.minimize(free, np.full(3, 0.5), budget=1000, term=pasta_opt.L1(9.0, coordinates=range(0, 2)))
    assert list(result.x[:2]) == [0, 0]


def test_a_gamma_that_is_no_length_is_refused_before_the_run():
    for wrong in (-1.0, 0.0, float("inf")):
        with pytest.raises(ValueError, match="gamma must be positive"):
            pasta_opt.minimize(Seen(), np.full(3, 0.5), target=0.1, bounds=[(0, None)] * 3, gamma=wrong)


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


class Half:
    """x_0 + x_1 <= 1, which counts how often it is asked."""

    name = "a half-space"

    def __init__(self):
        self.calls = 0

    def value(self, x):
        return 0.0 if x[0] + x[1] <= 1 + 1e-12 else math.inf

    def prox(self, v, gamma):
        self.calls += 1
        z = v.copy()
        z[:2] -= max(0.0, v[0] + v[1] - 1) / 2
        return z


def test_an_object_with_a_prox_is_a_term_and_its_domain_is_kept():
    half = Half()
    seen = Seen(lambda x: x[0] + x[1] <= 1 + 1e-12)
    result = pasta_opt.minimize(seen, np.zeros(3), target=0.1, term=half)
    assert result.stop.kind == "certified" and result.term == "a half-space" and half.calls > 0
    # The same by the library's own: (-1, 2) lies on x_0 + x_1 = 1, so both end near it.
    assert np.abs(result.x - CENTRE).max() < 0.2
    again = pasta_opt.minimize(seen, np.zeros(3), target=0.1, term=Half())
    assert (again.x == result.x).all()
    assert "reproduced" in pasta_opt.verify(result, seen, term=Half())
    adam = pasta_opt.minimize(seen, np.zeros(3), budget=300, method=pasta_opt.methods.Adam(eta=0.05, steps=50), term=Half())
    assert adam.x[0] + adam.x[1] <= 1 + 1e-12
    with pytest.raises(ValueError, match="stands alone"):
        pasta_opt.minimize(seen, np.zeros(3), budget=300, term=Half(), bounds=[(0, 1)] * 3)


class Slip:
    """l1, with a slip."""

    def __init__(self, prox):
        self.slip = prox

    def value(self, x):
        return float(np.abs(x).sum())

    def prox(self, v, gamma):
        return self.slip(v, gamma)


def soft(v, weight):
    return np.sign(v) * np.maximum(np.abs(v) - weight, 0)


@pytest.mark.parametrize(
    ("prox", "words"),
    [
        (lambda v, gamma: soft(v, 2 * gamma), "not that of the value"),
        (lambda v, gamma: soft(v, 1.0), "not that of the value"),
        (lambda v, gamma: 2 * v, "firmly non-expansive"),
        (lambda v, gamma: v[:1], "an array of 3 numbers, but it gave 1"),
        (lambda v, gamma: np.full(3, np.nan), "number 0 is NaN"),
        (lambda v, gamma: v * np.random.default_rng().uniform(), "differs from call to call"),
    ],
)
def test_a_prox_that_breaks_a_law_is_refused_when_it_is_given(prox, words):
    with pytest.raises(ValueError, match=words):
        pasta_opt.minimize(Seen(lambda x: True), np.full(3, 0.5), budget=1000, term=Slip(prox))


def test_what_a_prox_raises_is_raised():
    class Late(Slip):
        left = 200

        def prox(self, v, gamma):
            self.left -= 1
            if self.left < 0:
                raise ZeroDivisionError("in a prox")
            return soft(v, gamma)

    with pytest.raises(ZeroDivisionError, match="in a prox"):
        pasta_opt.minimize(Seen(lambda x: True), np.full(3, 0.5), budget=100_000, term=Late(None))


def test_a_target_may_be_a_share_of_the_mapping_at_the_start():
    bounds = [(0, None), (0, 1), (0, None)]
    result = pasta_opt.minimize(Seen(), np.full(3, 0.5), target="10%", bounds=bounds)
    # A step of length 1 goes to (0, 1, 0.5).
    assert abs(result.of_start.gradient / np.sqrt(0.5) - 1) < 0.3
    assert result.of_start.gamma == result.certificate.gamma
    assert "reproduced" in pasta_opt.verify(result, Seen(), bounds=bounds)


def test_what_is_asked_without_a_run_stays_in_the_bounds():
    bounds = [(0, None)] * 3
    start = np.full(3, 0.01)
    assert pasta_opt.check(Seen(), start, bounds=bounds).is_believable
    found = pasta_opt.calibrate(Seen(), start, budget=10_000, bounds=bounds)
    assert abs(found.smoothness.value - 1) < 0.1
    race = pasta_opt.compare(Seen(), start, budget=1000, methods=["auto", "adam"], seeds=2, bounds=bounds)
    assert race.gamma is not None
    assert pasta_opt.forecast(Seen(), start, target="20%", samples=5000, bounds=bounds).target > 0
    with pytest.raises(ValueError, match="is below 0"):
        pasta_opt.compare(Seen(), -start, budget=1000, methods=["auto"], bounds=bounds)


def test_ask_and_tell_has_bounds():
    run = pasta_opt.AskTell(np.full(3, 0.5), budget=3000, bounds=[(0, None)] * 3)
    while (blocks := run.ask()) is not None:
        for block in blocks:
            assert all((x >= 0).all() for x in block.points)
        run.tell([block.answer(Seen()) for block in blocks])
    assert run.result().x[0] < 0.2


def test_a_problem_file_keeps_its_terms(tmp_path):
    text = """
[problem]
name = "quadratic"
spectrum = [1.0, 1.0]
start = [1.0, 1.5]

[noise]
tail = "gaussian"
growth = 0.0
floor = 1.0

[[term]]
kind = "box"
lower = [0.5, -inf]
upper = 2
"""
    (tmp_path / "p.toml").write_text(text)
    problem = pasta_opt.read_problem(tmp_path / "p.toml")
    result = pasta_opt.minimize(problem, problem.start, target=0.1)
    assert result.x[0] == 0.5 and result.term.startswith("box")
    with pytest.raises(ValueError, match="has a .*term"):
        pasta_opt.minimize(problem, problem.start, target=0.1, bounds=[(0, 1)] * 2)
