"""NumPyro: models fitted to a certificate, and certificates for its own fits and for loops of optax."""

import numpy as np
import pasta_opt
import pytest

jax = pytest.importorskip("jax")
numpyro = pytest.importorskip("numpyro")
import jax.numpy as jnp  # noqa: E402
import numpyro.distributions as dist  # noqa: E402
from numpyro import infer  # noqa: E402

RNG = np.random.default_rng(0)
Y = 3.0 + 2.0 * RNG.normal(size=50)


def normal(y):
    """Conjugate but for the scale, which is positive."""
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    sigma = numpyro.sample("sigma", dist.LogNormal(0, 1))
    numpyro.deterministic("twice", 2 * mu)
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


def test_a_model_is_fitted_to_a_certificate_in_its_own_spaces():
    fit = pasta_opt.numpyro.fit(normal, Y, family="fullrank", target="0.1 sd")
    assert fit.is_certified and fit.fit.error_in_sd <= 0.1 and fit.fit.names == ("mu", "sigma")
    draws = fit.sample(5_000)
    assert draws["mu"].shape == (5_000,) and (draws["sigma"] > 0).all()
    assert np.allclose(draws["twice"], 2 * draws["mu"], rtol=1e-5)
    # With 50 rows the posterior of mu is that of large samples: its mean to a tenth of a deviation, and a little for the prior and the draws.
    error = Y.std() / np.sqrt(50)
    said = fit.summary()
    assert abs(said["mu"]["mean"] - Y.mean()) < 0.25 * error and abs(said["mu"]["sd"] / error - 1) < 0.2
    assert abs(said["sigma"]["mean"] / Y.std() - 1) < 0.1


def test_draws_go_to_arviz():
    arviz = pytest.importorskip("arviz")
    fit = pasta_opt.numpyro.fit(normal, Y, target=0.3)
    posterior = fit.to_arviz(100)["posterior"]
    assert posterior["mu"].shape == (1, 100) and "certified" in posterior.attrs["pasta_opt"]
    assert arviz.__version__


def test_a_subsample_is_refused():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 10))
        with numpyro.plate("rows", len(y), subsample_size=10):
            numpyro.sample("y", dist.Normal(mu, 1), obs=numpyro.subsample(jnp.asarray(y), event_dim=0))

    with pytest.raises(ValueError, match="the plate rows has a subsample_size of 10 of 50"):
        pasta_opt.numpyro.fit(model, Y)


def test_an_svi_is_certified_where_it_is_done_and_not_where_it_is_not():
    guide = infer.autoguide.AutoNormal(normal)
    # Adam's steps fall, so that its last point is good enough.
    svi = infer.SVI(normal, guide, numpyro.optim.Adam(lambda i: 0.05 / (1 + i / 100)), infer.Trace_ELBO())
    state = svi.init(jax.random.PRNGKey(0), Y)
    oracle = pasta_opt.numpyro.oracle(svi, state, Y)
    early = pasta_opt.certify(oracle, target=1.0, budget=100_000)
    assert not early.is_certified and "run on" in early.outlook
    is_done = pasta_opt.StopWhenCertified(oracle, 1.0, every=500, budget=100_000)
    update = jax.jit(lambda state: svi.update(state, Y))
    for _ in range(10_000):
        state, _ = update(state)[:2]
        if is_done(state):
            break
    assert is_done.certificate.is_certified
    # The true gradient, from a hundred thousand draws of our own, is within the bound.
    parameters = svi.optim.get_params(state.optim_state)
    loss = lambda p, key: svi.loss.loss(key, svi.constrain_fn(p), svi.model, svi.guide, Y)  # noqa: E731
    mean = jax.jit(lambda p, keys: jax.tree.map(lambda g: g.mean(axis=0), jax.vmap(jax.grad(loss), (None, 0))(p, keys)))
    parts = mean(parameters, jax.random.split(jax.random.PRNGKey(9), 100_000))
    norm = np.sqrt(sum(float((part**2).sum()) for part in jax.tree.leaves(parts)))
    assert norm <= 1.0


def test_a_loop_of_optax_stops_when_it_is_certified():
    optax = pytest.importorskip("optax")
    x = RNG.normal(size=(500, 2))
    data = (x, x @ [1.0, -2.0] + 0.5 * RNG.normal(size=500))
    loss = lambda w, row: (row[0] @ w - row[1]) ** 2 / 2  # noqa: E731
    is_done = pasta_opt.StopWhenCertified(pasta_opt.jax.oracle(loss, pasta_opt.jax.rows(data)), 0.1, every=200)
    w, optimiser = jnp.zeros(2), optax.sgd(0.05)
    state = optimiser.init(w)
    batch = jax.jit(jax.grad(lambda w, rows: jax.vmap(loss, (None, 0))(w, rows).mean()))
    for _ in range(5_000):
        rows = RNG.integers(0, 500, size=32)
        updates, state = optimiser.update(batch(w, (x[rows], data[1][rows])), state)
        w = optax.apply_updates(w, updates)
        if is_done(w):
            break
    assert is_done.certificate.is_certified
    assert np.linalg.norm(batch(w, data)) <= 0.1


def test_rows_need_a_common_axis():
    with pytest.raises(ValueError, match="a common first axis"):
        pasta_opt.jax.rows((np.zeros((3, 2)), np.zeros(4)))
