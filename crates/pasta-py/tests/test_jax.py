"""Oracles in JAX."""

import numpy as np
import pasta_opt
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

TRUTH = np.array([1.0, -2.0, 3.0])


def sample(key):
    one, two = jax.random.split(key)
    row = jax.random.normal(one, (3,))
    return {"row": row, "label": row @ jnp.asarray(TRUTH) + 0.5 + jax.random.normal(two)}


def loss(params, xi):
    return (xi["row"] @ params["w"] + params["b"] - xi["label"]) ** 2 / 2


# One for all tests: it keeps what was compiled.
ORACLE = pasta_opt.jax.oracle(loss, sample)
START = {"w": jnp.zeros(3), "b": jnp.zeros(())}


def test_pytrees_go_in_and_come_out():
    result = pasta_opt.minimize(ORACLE, START, budget=20_000)
    assert jax.tree.structure(result.params) == jax.tree.structure(START)
    assert result.params["w"].shape == (3,) and result.params["b"].shape == ()
    # The error of the mean of 20,000 rows is about sqrt(4/20,000) = 0.014; a method that does not waste most of them stays below 0.15.
    assert np.abs(np.asarray(result.params["w"]) - TRUTH).max() < 0.15
    assert abs(float(result.params["b"]) - 0.5) < 0.15


def test_samples_come_from_addresses():
    results = [pasta_opt.minimize(ORACLE, START, budget=3_000, threads=threads) for threads in (1, 2)]
    assert results[0].x.tobytes() == results[1].x.tobytes()
    other = pasta_opt.minimize(ORACLE, START, budget=3_000, seed=2)
    assert other.x.tobytes() != results[0].x.tobytes()


def test_a_sample_does_not_depend_on_how_many_are_drawn_with_it():
    bound, x, _ = pasta_opt.jax.oracle(lambda params, xi: params @ xi, lambda key: jax.random.normal(key, (2,))).bind(jnp.ones(2))
    rng = lambda: np.random.Generator(np.random.Philox(key=[1, 2]))  # noqa: E731
    sums = [np.asarray(bound.gradient(x, rng(), n)[1]) for n in (1, 2, 3, 5)]
    # The gradient is the sample itself: sums over the first n grow by one sample each, whatever size was compiled for.
    again = np.asarray(bound.gradient(x, rng(), 4)[1])
    five_less_four = sums[3] - again
    assert np.isfinite(five_less_four).all() and np.abs(five_less_four).max() > 1e-3
    keys = [jax.random.fold_in(jax.random.wrap_key_data(rng().integers(0, 2**32, size=2, dtype=np.uint32)), i) for i in range(5)]
    rows = np.array([jax.random.normal(key, (2,)) for key in keys])
    for count, got in zip((1, 2, 3, 5), sums, strict=True):
        # Single precision, in any order.
        assert np.allclose(got, rows[:count].sum(axis=0), atol=1e-5)


def test_it_is_an_oracle_like_any_other(tmp_path):
    oracle = ORACLE
    solution = {"w": jnp.asarray(TRUTH), "b": jnp.asarray(0.5)}
    assert pasta_opt.certify(oracle, solution, target=0.3).is_certified
    assert pasta_opt.calibrate(oracle, START, budget=10_000).smoothness.value > 0.5
    first = pasta_opt.minimize(oracle, START, budget=2_000, method=pasta_opt.methods.Sgd(eta=0.01))
    first.save(tmp_path)
    more = pasta_opt.resume(tmp_path, oracle, START, budget=4_000)
    assert jax.tree.structure(more.params) == jax.tree.structure(START)
    with pytest.raises(TypeError, match="structure"):
        pasta_opt.resume(tmp_path, oracle)
    with pytest.raises(ValueError, match="x0 must have the structure of the run's start, which had .* numbers, but it has 10"):
        pasta_opt.resume(tmp_path, oracle, {"w": jnp.zeros(10)})


def test_what_is_no_tree_of_numbers_is_refused():
    oracle = ORACLE
    with pytest.raises(ValueError, match="at least one array"):
        pasta_opt.minimize(oracle, {}, budget=100)
    with pytest.raises(TypeError, match="int32"):
        pasta_opt.minimize(oracle, {"w": jnp.zeros(3, jnp.int32)}, budget=100)
    with pytest.raises(TypeError, match="loss must be a function"):
        pasta_opt.jax.oracle(3, sample)


def test_an_oracle_of_jax_is_served_to_the_program(tmp_path):
    import json
    import subprocess
    import sys

    worker = """
import jax.numpy as jnp, pasta_opt, jax
oracle = pasta_opt.jax.oracle(lambda p, xi: jnp.sum((p["w"] - xi) ** 2) / 2, lambda key: jax.random.normal(key, (2,)) + 1)
pasta_opt.serve(oracle, {"w": jnp.zeros(2)})
"""
    (tmp_path / "worker.py").write_text(worker)
    command = f"{sys.executable} worker.py"
    words = ["solve", "--command", command, "--dimension", "2", "--budget", "3000", "--json", "--threads", "1"]
    said = subprocess.run([sys.executable, "-m", "pasta_opt", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 5), said.stderr
    # The error of the mean of 3,000 samples is about sqrt(2/3000) = 0.026.
    assert np.linalg.norm(np.array(json.loads(said.stdout)["point"]) - 1) < 0.3
    said = subprocess.run([sys.executable, "-m", "pasta_opt", *words[:4], "3", *words[5:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode != 0 and "x0 has 2 numbers, but the program's dimension is 3" in said.stderr


def test_bounds_hold_for_every_point_that_jax_sees():
    seen = []

    def watched(params, xi):
        jax.debug.callback(lambda x: seen.append(np.array(x)), params)
        return jnp.sum((params - xi) ** 2) / 2

    oracle = pasta_opt.jax.oracle(watched, lambda key: jnp.array([-1.0, 2.0]) + jax.random.normal(key, (2,)))
    result = pasta_opt.minimize(oracle, jnp.full(2, 0.5), target=0.3, bounds=[(0, None), (0, 1)])
    jax.effects_barrier()
    assert result.stop.kind == "certified" and result.certificate.gamma is not None
    assert np.asarray(result.params).tolist() == [0.0, 1.0]
    points = np.array([x for batch in seen for x in np.reshape(batch, (-1, 2))])
    assert len(points) > 100 and (points >= 0).all() and (points[:, 1] <= 1).all()
