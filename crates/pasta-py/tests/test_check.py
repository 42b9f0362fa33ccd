"""Which slips of a Python oracle are caught, in all its forms: before a run, at length, and at the certificate. docs/check.md has the table."""

import warnings

import numpy as np
import pytest

import pasta_opt

TRUTH = np.array([1.0, -2.0, 0.5, 3.0])
START = np.array([0.3, 1.0, -2.0, 0.0])
SEEDS = range(1, 9)
OWN = np.random.default_rng(5)


def rows(x, rng, n):
    """Losses and gradients of n samples of a regression."""
    a = rng.normal(size=(n, 4))
    residual = a @ (x - TRUTH) - 0.3 * rng.normal(size=n)
    return residual**2 / 2, residual[:, None] * a


def changed(change):
    def slip(x, rng, n):
        losses, gradients = rows(x, rng, n)
        return change(x, losses, gradients)

    return slip


def forgotten(x, losses, gradients):
    gradients[:, 2] = 0
    return losses, gradients


def some_nan(x, losses, gradients):
    gradients[(1e3 * losses) % 1 < 0.25] = np.nan
    return losses, gradients


def fixed(x, rng, n):
    return rows(x, np.random.default_rng(0), n)


def other_sample(x, rng, n):
    gradients = rows(x, rng, n)[1]
    return rows(x, rng, n)[0], gradients


SLIPS = {
    "honest": rows,
    "forgotten": changed(forgotten),
    "swapped": changed(lambda x, f, g: (f, g[:, [3, 1, 2, 0]])),
    "sign of one": changed(lambda x, f, g: (f, g * [1, -1, 1, 1])),
    "factor on one": changed(lambda x, f, g: (f, g * [1, 1, 1, 2])),
    "factor on all": changed(lambda x, f, g: (f, 2 * g)),
    "sign of all": changed(lambda x, f, g: (f, -g)),
    "shifted": changed(lambda x, f, g: (f, np.roll(g, 1, axis=1))),
    "penalty": changed(lambda x, f, g: (f + 0.05 * x @ x, g)),
    "constant loss": changed(lambda x, f, g: (0 * f, g)),
    "unrelated loss": changed(lambda x, f, g: (f * 0 + (x**4).sum(), g)),
    "other sample": other_sample,
    "ignores x": lambda x, rng, n: (rows(x, rng, n)[0], rng.normal(size=(n, 4))),
    "own generator": lambda x, rng, n: (rows(x, rng, n)[0], rows(x, OWN, n)[1]),
    "nan": changed(some_nan),
    "fixed seed": fixed,
}


class Whole(pasta_opt.Problem):
    def __init__(self, slip):
        self.slip, self.name = slip, "problem"

    def gradient(self, x, rng, n):
        return self.slip(x, rng, n)[1]

    def loss(self, x, rng, n):
        return self.slip(x, rng, n)[0]


class Single(Whole):
    def gradient(self, x, rng):
        return self.slip(x, rng, 1)[1][0]

    def loss(self, x, rng):
        return self.slip(x, rng, 1)[0][0]


def one(slip):
    def oracle(x, rng):
        losses, gradients = slip(x, rng, 1)
        return losses[0], gradients[0]

    return oracle


def sums(slip):
    def oracle(x, rng, n):
        losses, gradients = slip(x, rng, n)
        return losses.sum(), gradients.sum(axis=0)

    return oracle


def all_rows(slip):
    return lambda x, rng, n: slip(x, rng, n)


FORMS = {"one sample": one, "sums of n": sums, "rows of n": all_rows, "problem": Single, "problem of n": Whole}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("slip", SLIPS)
def test_slips_are_caught_in_all_forms_and_seeds(slip, form):
    oracle = FORMS[form](SLIPS[slip])
    one_by_one = form in ("one sample", "problem")
    method = pasta_opt.methods.Sgd(eta=1e-3, steps=3)
    for seed in SEEDS if slip != "honest" else SEEDS[:2]:
        refused = None
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                pasta_opt.minimize(oracle, START, method=method, seed=seed)
            except ValueError as error:
                refused = str(error)
        if slip == "nan":
            # A first sample that is not finite is a ValueError, too.
            assert refused is not None and "not finite" in refused
            with pytest.raises(ValueError, match="not finite"):
                pasta_opt.certify(oracle, TRUTH, target=1.0, seed=seed)
            continue
        believable = pasta_opt.check(oracle, START, seed=seed).is_believable
        if slip == "honest":
            assert refused is None and believable and not said
        elif slip == "fixed seed" and one_by_one:
            assert refused is None and believable
            assert [str(warning.message)[:24] for warning in said] == ["no noise at all was seen"]
        else:
            assert refused is not None and "failed its check" in refused and not believable
        found = pasta_opt.certify(oracle, TRUTH, target=1.0, seed=seed)
        if slip == "honest":
            assert found.is_certified and found.statement.endswith("Losses and gradients of 16 further samples agree at x.")
        elif slip == "fixed seed":
            assert found.verdict == "no-noise" and found.statement.startswith("no noise was seen")
        else:
            assert found.verdict == "void" and found.statement.startswith("VOID: "), found


def test_a_mean_for_a_sum_is_caught_within_a_few_hundred_samples():
    def mean(x, rng, n):
        return rows(x, rng, n)[1].mean(axis=0)

    def mean_beside_losses(x, rng, n):
        losses, gradients = rows(x, rng, n)
        return losses, gradients.mean(axis=0)

    def mean_of_squares(x, rng, n):
        return (x - rng.normal(size=(n, 4))).mean(axis=0)

    for seed in SEEDS:
        assert pasta_opt.check(mean, START, seed=seed).slips[0].kind == "mean-for-sum"
        for oracle, budget in ((mean_beside_losses, 600), (mean_of_squares, 500)):
            with pytest.raises(ValueError, match="it is their mean"):
                pasta_opt.minimize(oracle, START, budget=budget, seed=seed)


def test_the_cost_returned_for_the_gradient_is_caught_beside_a_loss():
    def cost(x, rng, n):
        f = (x[0] - rng.normal(size=n)) ** 2 / 2
        return f.sum(), f.sum()

    for seed in SEEDS:
        with pytest.raises(ValueError, match="the loss does not belong to the gradient"):
            pasta_opt.minimize(cost, [3.0], budget=2_000, seed=seed)


def test_a_run_believed_without_a_check_is_not_certified_where_losses_contradict_it():
    for form in FORMS.values():
        result = pasta_opt.minimize(form(SLIPS["forgotten"]), START, target=0.5, budget=200_000, check=False)
        assert result.stop.kind == "void" and result.certificate.verdict == "void"
        assert "coordinate 2" in result.certificate.statement and not result.certificate.is_certified


def test_likelihood_ratios_are_declared_and_then_compared_in_the_mean():
    def ratio(x, rng, n):
        z = rng.normal(size=(n, 2))
        costs = ((x + z) ** 2).sum(axis=1)
        return costs, costs[:, None] * z

    with pytest.raises(ValueError, match="declare pathwise = false"):
        pasta_opt.minimize(ratio, [0.4, 2.0], budget=2_000)
    for seed in SEEDS:
        declared = pasta_opt.Oracle(ratio, pathwise=False)
        assert pasta_opt.minimize(declared, [0.4, 2.0], budget=2_000, seed=seed).ledger.samples <= 2_000
        assert pasta_opt.check(declared, [0.4, 2.0], seed=seed).is_believable
