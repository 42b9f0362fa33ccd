"""The installed package: runs, and what they promise."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pasta_opt
import pytest

TRUTH = np.array([1.0, -2.0, 3.0])


def one(x, rng):
    """Least squares on a stream, one sample."""
    a = rng.normal(size=3)
    return (a @ x - a @ TRUTH - rng.normal()) * a


def many(x, rng, n):
    """The same, the sum over n."""
    a = rng.normal(size=(n, 3))
    return (a @ x - a @ TRUTH - rng.normal(size=n)) @ a


def rows(x, rng, n):
    """The same, a row for each sample."""
    a = rng.normal(size=(n, 3))
    return (a @ x - a @ TRUTH - rng.normal(size=n))[:, None] * a


def with_losses(x, rng, n):
    a = rng.normal(size=(n, 3))
    residual = a @ x - a @ TRUTH - rng.normal(size=n)
    return residual**2 / 2, residual @ a


def one_with_loss(x, rng):
    a = rng.normal(size=3)
    residual = a @ x - a @ TRUTH - rng.normal()
    return residual**2 / 2, residual * a


class Whole(pasta_opt.Problem):
    name = "least squares on a stream"

    def gradient(self, x, rng, n):
        return many(x, rng, n)

    def difference(self, x, y, rng, n):
        a = rng.normal(size=(n, 3))
        return (a @ (x - y)) @ a

    def loss(self, x, rng, n):
        return with_losses(x, rng, n)[0]


FORMS = [one, many, rows, with_losses, one_with_loss, Whole()]


@pytest.mark.parametrize("oracle", FORMS, ids=lambda form: getattr(form, "__name__", "Problem"))
def test_every_form_of_an_oracle_leads_to_the_solution(oracle):
    result = pasta_opt.minimize(oracle, np.zeros(3), budget=20_000)
    # The mean of 20,000 samples has an error of about sqrt(3/20,000) = 0.012; a method that does not waste most of them stays below 0.15.
    assert np.linalg.norm(result.x - TRUTH) < 0.15
    assert result.stop.kind == "planned-end"
    assert result.ledger.samples <= 20_000


@pytest.mark.parametrize("oracle", [one, many, with_losses], ids=lambda form: form.__name__)
def test_the_number_of_threads_does_not_change_a_bit(oracle):
    results = [pasta_opt.minimize(oracle, np.zeros(3), budget=10_000, threads=threads) for threads in (1, 2, 5, None)]
    assert len({result.x.tobytes() for result in results}) == 1
    assert all(result.ledger == results[0].ledger for result in results)


def test_another_seed_is_another_run():
    x = [pasta_opt.minimize(with_losses, np.zeros(3), budget=5_000, seed=seed).x for seed in (1, 1, 2)]
    assert x[0].tobytes() == x[1].tobytes() != x[2].tobytes()


def test_a_sum_and_rows_are_the_same_run_but_for_rounding():
    x = [pasta_opt.minimize(oracle, np.zeros(3), budget=10_000).x for oracle in (many, rows)]
    assert np.linalg.norm(x[0] - TRUTH) < 0.15
    # The same draws; the order of additions within a block differs.
    assert np.allclose(*x, rtol=0, atol=1e-8)


def test_a_target_ends_in_a_certificate():
    result = pasta_opt.minimize(many, np.zeros(3), target=0.2, delta=0.01)
    assert result.stop.kind == "certified"
    assert result.certificate.is_certified and result.certificate.bound <= 0.2
    # The attempts of a run share its delta.
    assert result.certificate.delta <= 0.01
    # f = |x - truth|^2/2 + 1/2, so the gradient is x - truth.
    assert np.linalg.norm(result.x - TRUTH) <= 0.2
    assert "kurtosis at most 100" in result.certificate.statement


@pytest.mark.parametrize("basis", [pasta_opt.Variance(60.0), pasta_opt.Growth(3.0, 8.0), pasta_opt.Kurtosis(50)])
def test_a_certificate_names_what_it_rests_on(basis):
    result = pasta_opt.minimize(many, TRUTH, target=0.5, certificate=basis)
    assert result.certificate.is_certified
    assert ("declared" in result.certificate.statement) == (not isinstance(basis, pasta_opt.Kurtosis))


def test_a_budget_is_never_overdrawn():
    drawn = 0

    def counted(x, rng, n):
        nonlocal drawn
        drawn += n
        return many(x, rng, n)

    oracle = pasta_opt.Oracle(counted, losses=False)
    method = pasta_opt.methods.Sgd(eta=0.01)
    result = pasta_opt.minimize(oracle, np.zeros(3), budget=3_000, method=method, check=False)
    assert drawn == result.ledger.samples == 3_000
    assert result.stop.kind == "planned-end" and result.steps == 3_000
    drawn = 0
    result = pasta_opt.minimize(oracle, np.zeros(3), budget=3_000, method=method)
    assert drawn > result.ledger.samples == 3_000 and result.stop.kind == "out-of-budget"
    # A sample at two points is two calls.
    assert drawn == result.ledger.evaluations


def test_the_sample_that_shows_the_form_is_counted():
    calls = []
    result = pasta_opt.minimize(
        lambda x, rng: calls.append(1) or x, [1.0], budget=10, method=pasta_opt.methods.Sgd(eta=0.1, steps=5)
    )
    assert len(calls) == result.ledger.samples == 6
    assert result.ledger.by_role["check"]["samples"] == 1


def test_an_address_gives_the_words_of_the_library():
    """numpy's generator is set so that it draws what a Stream of the library draws at the same address."""
    drawn = []

    def oracle(x, rng):
        drawn.append(rng.random())
        return np.zeros(1)

    oracle = pasta_opt.Oracle(oracle, losses=False)
    pasta_opt.minimize(oracle, [0.0], seed=7, method=pasta_opt.methods.Sgd(eta=1, steps=2, batch=2), check=False)
    # Philox4x64-10 with the key (seed, role) and the counter (0, sample, step, 0); role 1 is that of large batches.
    for value, (step, sample) in zip(drawn, [(0, 0), (0, 1), (1, 0), (1, 1)], strict=True):
        counter = (sample << 64 | step << 128) - 1
        words = [counter >> shift & (2**64 - 1) for shift in (0, 64, 128, 192)] if counter >= 0 else [2**64 - 1] * 4
        again = np.random.Generator(np.random.Philox(key=[7, 1], counter=np.array(words, np.uint64)))
        assert value == again.random()


def test_a_difference_sees_the_same_draws_at_both_points():
    seen = {}

    def oracle(x, rng):
        seen.setdefault(rng.random(), set()).add(x.tobytes())
        return x

    method = pasta_opt.methods.Storm(eta=0.1, momentum=0.5, steps=4)
    pasta_opt.minimize(pasta_opt.Oracle(oracle, losses=False), [1.0], method=method, check=False)
    assert [len(points) for points in seen.values()] == [1, 2, 2, 2]


@pytest.mark.parametrize(
    "shape",
    [
        lambda g: g.tolist(),
        lambda g: g.astype(np.float32),
        lambda g: np.asfortranarray(g),
        lambda g: np.repeat(g, 2, axis=-1)[..., ::2],
        lambda g: read_only(g),
        lambda g: np.round(g).astype(np.int64),
        lambda g: g.astype(">f8"),
    ],
    ids=["list", "float32", "fortran", "strided", "read-only", "integers", "big-endian"],
)
@pytest.mark.parametrize("form", [many, rows], ids=["sum", "rows"])
def test_arrays_of_every_make_are_read_right(form, shape):
    def oracle(x, rng, n):
        return shape(np.round(form(x, rng, n)))

    def plain(x, rng, n):
        return np.round(form(x, rng, n))

    method = pasta_opt.methods.Sgd(eta=0.0078125, steps=20, batch=16)
    got, wanted = (pasta_opt.minimize(f, np.zeros(3), method=method).x for f in (oracle, plain))
    # Whole numbers, so that float32 and any order of additions are exact.
    assert got.tobytes() == wanted.tobytes()


def read_only(g):
    g.flags.writeable = False
    return g


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.zeros(4), ValueError, r"must have shape \(3,\), but has shape \(4,\)"),
        (np.zeros((3, 1)), ValueError, r"must have shape \(3,\), but has shape \(3, 1\)"),
        (np.zeros((5, 3)), ValueError, r"let the function take n"),
        (1.0, ValueError, r"has shape \(\)"),
        (None, TypeError, "real numbers"),
        (np.zeros(3, complex), TypeError, "dtype complex128"),
        (["a", "b", "c"], TypeError, "real numbers"),
        ([[1.0], [2.0, 3.0]], ValueError, "no array"),
        ((1.0, 2.0), ValueError, r"a pair is read as \(loss, gradient\)|has shape \(\)"),
        (("loss", np.zeros(3)), TypeError, "the loss .* must be a real number"),
    ],
)
def test_an_answer_that_is_no_gradient_is_refused_with_a_sentence(value, error, words):
    method = "auto"
    with pytest.raises(error, match=words):
        pasta_opt.minimize(lambda x, rng: value, np.zeros(3), budget=1_000, method=method)


def test_nan_now_and_then_is_counted_and_ends_a_run_or_is_left_out():
    def oracle(x, rng):
        return x + 0.1 * rng.normal(size=3) if rng.random() < 0.99 else np.full(3, np.nan)

    asked = pasta_opt.Oracle(oracle, losses=False)
    with pytest.warns(RuntimeWarning, match="not all answers of the oracle were finite"):
        result = pasta_opt.minimize(asked, TRUTH, budget=10_000, check=False)
    assert result.stop.kind == "not-finite" and "answers of the oracle at one point are not finite" in result.stop.meaning
    assert result.ledger.not_finite > 0 and np.isfinite(result.x).all()
    with pytest.warns(RuntimeWarning, match="were left out, which biases the result"):
        result = pasta_opt.minimize(asked, TRUTH, budget=10_000, check=False, on_nan="skip")
    assert result.stop.kind in ("planned-end", "settled") and result.ledger.not_finite > 10
    assert np.linalg.norm(result.x) < 0.02 and "answers were not finite" in repr(result)
    with pytest.raises(ValueError, match='on_nan must be "stop" or "skip"'):
        pasta_opt.minimize(asked, TRUTH, budget=10_000, on_nan="maybe")
    with pytest.raises(ValueError, match="at x0: .*not finite"):
        pasta_opt.minimize(lambda x, rng: x * np.nan, TRUTH, budget=10_000)


def test_a_target_out_of_reach_ends_a_run_without_a_budget(tmp_path):
    result = pasta_opt.minimize(many, np.zeros(3), target=1e-6, check=False, output=tmp_path / "run")
    assert result.stop.kind == "hopeless" and "is not within reach" in result.stop.meaning
    further = pasta_opt.resume(tmp_path / "run", many, budget=2 * result.ledger.samples)
    assert further.ledger.samples > result.ledger.samples and further.stop.kind != "hopeless"


@pytest.mark.parametrize(
    ("x0", "error", "words"),
    [
        ([], ValueError, "at least one number"),
        ([[1.0, 2.0]], ValueError, "ravel"),
        ([1.0, np.inf], ValueError, r"x0\[1\] is inf"),
        (["a"], TypeError, "real numbers"),
        ([1j], TypeError, "real numbers"),
        ([[1.0], [1.0, 2.0]], ValueError, "no vector"),
    ],
)
def test_a_start_that_is_none_is_refused(x0, error, words):
    with pytest.raises(error, match=words):
        pasta_opt.minimize(many, x0, budget=1_000)


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({}, ValueError, "say when to stop: target=0.1 .* budget="),
        ({"method": pasta_opt.methods.Sgd(eta=0.1)}, ValueError, "say when to stop"),
        ({"budget": 0}, ValueError, "budget must be a whole number from 1"),
        ({"budget": 1.5}, TypeError, "budget must be a whole number"),
        ({"budget": "many"}, TypeError, "budget must be a whole number"),
        ({"target": -1.0}, ValueError, "target must be positive"),
        ({"target": "small"}, TypeError, "target must be a number"),
        ({"target": 1.0, "delta": 1.0}, ValueError, "delta must be"),
        ({"target": 1.0, "certificate": 100}, TypeError, "Kurtosis"),
        ({"target": 1.0, "certificate": pasta_opt.Kurtosis(0.5)}, ValueError, "kurtosis must be"),
        ({"budget": 10, "seed": -1}, ValueError, "seed must be"),
        ({"budget": 10, "threads": 0}, ValueError, "threads must be"),
        ({"budget": 10, "method": "gradient-descent"}, ValueError, "no method is called .* adam"),
        ({"budget": 10, "method": "adam"}, ValueError, r"adam needs eta; give method=pasta_opt.methods.Adam"),
        ({"budget": 10, "method": pasta_opt.methods.Sgd(eta=-1)}, ValueError, "eta"),
        ({"budget": 10, "method": pasta_opt.methods.Sgd(eta=1, batch=0)}, ValueError, "batch must be"),
        ({"budget": 10, "callback": 3}, TypeError, "callback must be a function"),
    ],
)
def test_bad_keywords_are_refused_with_a_sentence(keywords, error, words):
    with pytest.raises(error, match=words):
        pasta_opt.minimize(many, np.zeros(3), **keywords)


def test_a_signature_that_does_not_tell_is_asked_about():
    with pytest.raises(TypeError, match="batched=True"):
        pasta_opt.minimize(lambda *args: args[0], [1.0], budget=100)
    with pytest.raises(TypeError, match=r"must take \(x, rng\)"):
        pasta_opt.minimize(lambda x: x, [1.0], budget=100)
    with pytest.raises(TypeError, match="must be a function"):
        pasta_opt.minimize(3, [1.0], budget=100)
    with pytest.raises(NotImplementedError, match="has to define gradient"):
        pasta_opt.minimize(pasta_opt.Problem(), [1.0], budget=100)
    result = pasta_opt.minimize(lambda x, rng, n=1: n * x, [1.0], budget=1_000)
    assert result.ledger.samples > 0


def test_exceptions_arrive_unchanged_with_their_traceback():
    class Mine(Exception):
        pass

    mine = Mine("from deep inside")

    def inner():
        raise mine

    calls = 0

    def oracle(x, rng, n):
        nonlocal calls
        calls += 1
        if calls == 5:
            inner()
        return many(x, rng, n)

    with pytest.raises(Mine) as caught:
        pasta_opt.minimize(oracle, np.zeros(3), budget=100_000)
    assert caught.value is mine
    assert "inner" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert calls == 5


def test_the_point_cannot_be_written_to_and_may_be_kept():
    kept = []

    def oracle(x, rng):
        kept.append((x, x.copy()))
        return x

    pasta_opt.minimize(oracle, [1.0], method=pasta_opt.methods.Sgd(eta=0.5, steps=5))
    assert all((now == then).all() for now, then in kept)

    def writing(x, rng):
        x[0] = 0.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        pasta_opt.minimize(writing, [1.0], budget=100)


def test_a_run_without_an_end_is_not_resumed(tmp_path):
    pasta_opt.minimize(many, np.zeros(3), budget=50_000, callback=lambda moment: moment.step == 3, output=tmp_path)
    with pytest.raises(ValueError, match="say when to stop: the run has no target and its method no end"):
        pasta_opt.resume(tmp_path, many)
    whole = pasta_opt.minimize(many, np.zeros(3), budget=50_000)
    again = pasta_opt.resume(tmp_path, many, budget=50_000)
    assert (again.x == whole.x).all() and again.stop == whole.stop


def test_a_run_that_ended_as_planned_says_that_nothing_was_left_to_do(tmp_path):
    sgd = pasta_opt.methods.Sgd(eta=0.01, batch=8)
    for name, aim in [("auto", {}), ("target", {"target": 0.001}), ("sgd", {"method": sgd})]:
        before = pasta_opt.minimize(many, np.zeros(3), budget=3_000, output=tmp_path / name, **aim)
        after = pasta_opt.resume(tmp_path / name, many, budget=100_000)
        assert after.stop.kind == "planned-end" and "the plan was made for 3000 samples and does not grow with the budget" in after.stop.meaning
        assert after.ledger.samples < 3_200 and after.asked == before.asked
    same = pasta_opt.resume(tmp_path / "auto", many, budget=3_000)
    assert "nothing was left to resume" in same.stop.meaning


def test_a_budget_without_room_for_a_step_says_so():
    result = pasta_opt.minimize(many, np.ones(3), budget=5)
    assert result.steps == 0 and (result.x == 1).all() and result.stop.meaning == "the budget has no room for a first step; the point is the start"


def test_what_is_not_given_is_not_used_up():
    """A gradient of 0 that is declared to have no noise is certified, and not out of a budget that nobody gave."""
    for function in (lambda x, rng, n: n * x, lambda x, rng, n: 0 * x):
        with pytest.warns(UserWarning, match="no noise at all was seen"):
            result = pasta_opt.minimize(function, np.zeros(3), target=1e-3, certificate=pasta_opt.Variance(0.0))
        assert result.stop.kind == "certified" and result.certificate.is_certified and result.ledger.samples < 10_000
        # Not declared, it is not certified: a fixed seed inside the oracle would look like that.
        with pytest.warns(UserWarning, match="no noise at all was seen"):
            result = pasta_opt.minimize(function, np.zeros(3), target=1e-3)
        assert result.certificate.verdict == "no-noise" and not result.certificate.is_certified and result.ledger.samples < 10_000


def test_a_callback_sees_every_step_and_can_stop():
    moments = []

    def callback(moment):
        moments.append(moment)
        return moment.step == 7

    method = pasta_opt.methods.Sgd(eta=0.1, steps=100)
    result = pasta_opt.minimize(one, np.zeros(3), method=method, callback=callback)
    assert [moment.step for moment in moments] == list(range(1, 8))
    assert result.stop.kind == "asked" and result.steps == 7
    assert (moments[-1].x == result.x).all()

    def failing(moment):
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        pasta_opt.minimize(one, np.zeros(3), method=method, callback=failing)


def test_a_run_within_a_run():
    def outer(x, rng):
        inner = pasta_opt.minimize(lambda y, rng: y - x, [0.0], method=pasta_opt.methods.Sgd(eta=1, steps=2))
        return inner.x

    result = pasta_opt.minimize(outer, [1.0], method=pasta_opt.methods.Sgd(eta=0.5, steps=3))
    assert result.x[0] == 0.125


def test_runs_in_several_threads_are_the_runs_they_are_alone():
    alone = pasta_opt.minimize(one, np.zeros(3), budget=2_000).x
    found = {}

    def work(i):
        found[i] = pasta_opt.minimize(one, np.zeros(3), budget=2_000).x

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(x.tobytes() == alone.tobytes() for x in found.values()) and len(found) == 4


def test_the_oracle_runs_in_the_thread_that_called():
    seen = set()

    def oracle(x, rng):
        seen.add(threading.get_ident())
        return x

    pasta_opt.minimize(oracle, np.ones(3), budget=3_000, threads=4)
    assert seen == {threading.get_ident()}


@pytest.mark.parametrize("place", ["oracle", "engine"])
def test_control_c_stops_a_run(place, tmp_path):
    """With small vectors most of the time goes into the oracle, with large ones into the engine."""
    dim = 3 if place == "oracle" else 3_000_000
    code = f"""
import signal, sys, numpy as np, pasta_opt
signal.signal(signal.SIGINT, signal.default_int_handler)
answer = np.full({dim}, 1e-3)
def oracle(x, rng):
    print("called", flush=True)
    return answer
try:
    pasta_opt.minimize(oracle, np.zeros({dim}), budget=10**12, method=pasta_opt.methods.Adam(eta=1e-9), output=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
"""
    folder = tmp_path / "run"
    run = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    # The first call shows whether there are losses; the run begins after it.
    for _ in range(3):
        run.stdout.readline()
    run.send_signal(signal.SIGINT)
    rest = run.communicate(timeout=60)[0]
    assert rest.endswith("interrupted\n") and run.returncode == 0
    assert (folder / "checkpoint.pasta").exists()


@pytest.mark.parametrize("method", ["auto", pasta_opt.methods.Adam(eta=0.01, steps=4_000)], ids=["auto", "adam"])
def test_a_run_goes_on_after_an_exception_bit_for_bit(tmp_path, method):
    calls, limit = 0, 40

    def oracle(x, rng, n):
        nonlocal calls
        calls += 1
        if calls == limit:
            raise OSError("the licence server is down")
        return many(x, rng, n)

    whole = pasta_opt.minimize(pasta_opt.Oracle(many, name="p"), np.zeros(3), budget=20_000, method=method)
    broken = pasta_opt.Oracle(oracle, name="p")
    with pytest.raises(OSError, match="licence"):
        pasta_opt.minimize(broken, np.zeros(3), budget=20_000, method=method, output=tmp_path / "run")
    with pytest.raises(FileExistsError, match="resume"):
        pasta_opt.minimize(broken, np.zeros(3), budget=20_000, method=method, output=tmp_path / "run")
    resumed = pasta_opt.resume(tmp_path / "run", broken, budget=20_000)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert resumed.ledger == whole.ledger
    assert resumed.trace.tobytes() == whole.trace.tobytes()


def test_a_run_is_not_resumed_on_another_oracle(tmp_path):
    method = pasta_opt.methods.Sgd(eta=0.1, steps=10)
    pasta_opt.minimize(many, np.zeros(3), method=method, output=tmp_path)
    with pytest.raises(ValueError, match="rows"):
        pasta_opt.resume(tmp_path, rows)
    with pytest.raises(ValueError, match="blocks of 7"):
        pasta_opt.resume(tmp_path, pasta_opt.Oracle(many, block=7))
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        pasta_opt.resume(tmp_path / "nowhere", many)
    (tmp_path / "checkpoint.pasta").write_bytes(b"something else")
    with pytest.raises(ValueError):
        pasta_opt.resume(tmp_path, many)


def test_a_result_prints_pickles_and_has_a_trace():
    result = pasta_opt.minimize(many, np.zeros(3), target=0.5, budget=100_000)
    text = repr(result)
    assert text.startswith("certified  |grad f| <= ") and str(result) == text
    assert len(text.splitlines()) <= 8 and "none" not in text
    assert "samples of steps" in result.details() and result.details().startswith("certified")
    assert "<table>" in result._repr_html_()
    again = pickle.loads(pickle.dumps(result))
    assert again.x.tobytes() == result.x.tobytes() and again.stop == result.stop
    assert again.certificate == result.certificate and again.ledger == result.ledger
    assert again.trace.dtype.names == ("step", "samples", "evaluations", "distance")
    assert (np.diff(result.trace["samples"].astype(float)) >= 0).all()
    assert result.trace["samples"][-1] == result.ledger.samples
    assert result.trace["distance"][-1] == pytest.approx(result.distance)


def test_a_recipe_ends_as_planned_with_its_promise():
    method = pasta_opt.methods.SmoothConvex(smoothness=1.0, distance=4.0, growth=2.0, floor=8.0, target=4.0)
    result = pasta_opt.minimize(many, np.zeros(3), method=method)
    assert result.stop.kind == "planned-end"
    assert "provided the constants are true" in result.promise
    with pytest.raises(ValueError, match="smoothness"):
        bad = pasta_opt.methods.SmoothConvex(smoothness=-1.0, distance=4.0, growth=2.0, floor=8.0, target=4.0)
        pasta_opt.minimize(many, np.zeros(3), method=bad)


def test_the_classes_of_methods_are_the_library_s_table():
    from dataclasses import MISSING, fields

    from pasta_opt import _engine, methods

    kinds = {kind.name(kind.__new__(kind)): kind for kind in methods._leaves(methods.Method)}
    table = {row["name"]: row for row in _engine.methods()}
    assert kinds.keys() == table.keys()
    for name, kind in kinds.items():
        own = {f.name: f for f in fields(kind) if f.name not in ("steps", "batch")}
        wanted = {s[0].replace("-", "_").replace("lambda", "lambda_"): s for s in table[name]["settings"]}
        assert own.keys() == wanted.keys(), name
        assert issubclass(kind, methods._Stepped) == table[name]["has_steps"]
        for setting, (_, _, default, is_needed) in wanted.items():
            assert own[setting].default == (MISSING if is_needed else default), (name, setting)


@pytest.mark.parametrize("method", [kind for kind in ["dog", "prodigy", "schedule-free-adamw", "sps"]])
def test_methods_without_needs_run_by_name(method):
    result = pasta_opt.minimize(with_losses, np.zeros(3), method=method, budget=300)
    assert result.method == method and result.ledger.samples <= 300


def test_a_point_from_anywhere_is_certified_or_not():
    good = pasta_opt.certify(many, TRUTH, target=0.3, certificate=pasta_opt.Variance(12.0))
    assert good.is_certified and good.bound <= 0.3 and "declared" in good.statement
    far = pasta_opt.certify(one_with_loss, np.zeros(3), target=0.3, budget=20_000)
    assert far.verdict == "above" and not far.is_certified and far.samples <= 20_000
    with pytest.raises(ValueError, match="target must be positive"):
        pasta_opt.certify(many, TRUTH, target=0)
    with pytest.raises(ZeroDivisionError):
        pasta_opt.certify(lambda x, rng: 1 // 0, TRUTH, target=0.3)


def test_calibration_finds_the_constants_of_least_squares():
    found = pasta_opt.calibrate(many, np.zeros(3), budget=30_000)
    # The gradient is (a a^T)(x - truth) - noise a: L = 1, and the variance is (d + 1) |x - truth|^2 + d.
    assert 0.8 < found.smoothness.value < 1.3
    assert found.floor.low < np.sqrt(4 * 14 + 3) < found.floor.high
    assert found.cost.samples <= 30_000
    with pytest.raises(ValueError, match="samples"):
        pasta_opt.calibrate(many, np.zeros(3), budget=10)


def test_lower_bounds_are_those_of_the_theorems():
    bound = pasta_opt.lower_bound(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001)
    assert bound.admissible and bound.T == 8
    # B^2 L Delta^3/(1572864 l1 varsigma^2 eps^6) + b^2 L Delta/(24576 l1 varsigma^2 eps^4)
    formula = 1 / (1572864 * 152 * 23**2 * 1e-18) + 0.25 / (24576 * 152 * 23**2 * 1e-12)
    assert bound.bound == pytest.approx(formula)
    assert pasta_opt.lower_bound(ms_smoothness=1, gap=1, growth=1e-4, floor=0, target=8.5e-4).T == 5
    with pytest.raises(ValueError, match="not both"):
        pasta_opt.lower_bound(gap=1, growth=1, floor=1, target=1)


def test_the_program_is_there():
    folder = os.path.dirname(sys.executable)
    for command in ([os.path.join(folder, "pasta")], [sys.executable, "-m", "pasta_opt"]):
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == f"pasta {pasta_opt.__version__}"
        plan = "plan smooth --smoothness 3 --gap 1.6 --growth 9 --floor 1 --target 0.1 --json".split()
        said = subprocess.run([*command, *plan], capture_output=True, text=True, check=True)
        assert json.loads(said.stdout)
        bad = subprocess.run([*command, "plan", "nothing"], capture_output=True, text=True, check=False)
        assert bad.returncode == 2 and bad.stdout == ""


def test_the_package_that_is_tested_is_the_installed_one():
    assert "site-packages" in pasta_opt.__file__


@pytest.mark.parametrize("name", ["least_squares", "variational", "newsvendor", "robust"])
def test_an_example_runs_and_draws(name, tmp_path):
    """Each example asserts what it claims."""
    pytest.importorskip("matplotlib")
    path = os.path.join(os.path.dirname(__file__), "..", "examples", f"{name}.py")
    figure = tmp_path / "figure.svg"
    said = subprocess.run([sys.executable, path, str(figure)], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert figure.read_text().lstrip().startswith("<?xml") and "certified" in said.stdout


def own_generator(x, rng, n):
    return many(x, np.random.default_rng(), n)


class Keeping:
    """Adds up over calls."""

    def __init__(self):
        self.sum = 0.0

    def __call__(self, x, rng):
        self.sum = self.sum + one(x, rng)
        return self.sum


def mean(x, rng, n):
    return many(x, rng, n) / n


def ignores_n(x, rng, n):
    return one(x, rng)


def ignores_rng(x, rng, n):
    return many(x, np.random.default_rng(n), n)


def in_a_corner(x, rng, n):
    return many(x, rng, n) if x[0] > -1e-12 else np.full(3, np.nan)


def other_loss(x, rng, n):
    loss, gradient = with_losses(x, rng, n)
    return 2 * loss, gradient


def mean_loss(x, rng, n):
    loss, gradient = with_losses(x, rng, n)
    return loss.mean(), gradient


class OtherDifference(Whole):
    def difference(self, x, y, rng, n):
        # Other rows at y.
        return many(x, rng, n) - many(y, rng, n)


@pytest.mark.parametrize(
    ("oracle", "words"),
    [
        (own_generator, "a generator of its own"),
        (Keeping(), "keeps something from one call to the next"),
        (mean, "the sum of the gradients of 16 samples is no larger than that of one sample .* it is their mean"),
        (ignores_n, "leaves out all but one"),
        (in_a_corner, "is not finite"),
        (other_loss, "the gradient of each sample is 0.5000 times what its loss says"),
        (mean_loss, "the sum of the losses of 5 samples is no larger"),
        (OtherDifference(), r"is not g\(x\) - g\(y\)"),
    ],
    ids=["own generator", "keeps", "mean", "ignores n", "corner", "loss", "mean loss", "difference"],
)
def test_a_slip_is_refused_before_the_first_step_and_named(oracle, words, tmp_path):
    method = pasta_opt.methods.Sgd(eta=1e-3, steps=3)
    start = np.array([0.0, 2.0, -1.0])
    with pytest.raises(ValueError, match=f"failed its check: .*{words}.*check=False"):
        pasta_opt.minimize(oracle, start, method=method, output=tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoint.pasta").exists()
    found = pasta_opt.check(oracle, start)
    assert not found.is_believable and len(found.slips) == len(found.sentences) >= 1
    # The switch: it runs, to nowhere.
    assert pasta_opt.minimize(oracle, start, method=method, check=False).stop.kind in ("planned-end", "diverged")


def test_samples_of_the_check_are_counted_and_change_no_bit():
    method = pasta_opt.methods.Adam(eta=0.01, steps=200)
    for oracle in FORMS:
        checked, believed = (pasta_opt.minimize(oracle, np.zeros(3), method=method, check=check) for check in (True, False))
        assert checked.x.tobytes() == believed.x.tobytes()
        taken = checked.ledger.by_role["check"]["samples"] - believed.ledger.by_role.get("check", {"samples": 0})["samples"]
        assert 30 <= taken <= 66 and checked.ledger.samples == believed.ledger.samples + taken
        assert f"{checked.ledger.by_role['check']['samples']} for the check" in repr(checked)
        found = pasta_opt.check(oracle, np.zeros(3))
        assert found.is_believable and found.has_noise and found.sentences == []
    # Nothing is drawn where the budget is small, of the library's own oracles, and when a run goes on.
    poor = pasta_opt.minimize(pasta_opt.Oracle(many, losses=False), np.zeros(3), method=method, budget=99)
    assert "check" not in poor.ledger.by_role
    hard = pasta_opt.HardInstance(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001)
    assert "check" not in pasta_opt.minimize(hard, hard.start, method=method).ledger.by_role


def test_an_exception_within_the_check_arrives_unchanged():
    calls = 0

    def failing(x, rng, n):
        nonlocal calls
        calls += 1
        if calls == 9:
            raise OSError("the licence server is down")
        return many(x, rng, n)

    with pytest.raises(OSError, match="licence"):
        pasta_opt.minimize(pasta_opt.Oracle(failing, losses=False), np.zeros(3), budget=10_000)
    assert calls == 9


def test_an_answer_may_be_written_to_the_same_memory_again():
    memory = np.zeros(3)

    def reusing(x, rng, n):
        memory[:] = many(x, rng, n)
        return memory

    method = pasta_opt.methods.Storm(eta=0.01, momentum=0.3, steps=50, batch=4)
    results = [pasta_opt.minimize(pasta_opt.Oracle(f, name="p"), np.zeros(3), method=method) for f in (many, reusing)]
    assert results[0].x.tobytes() == results[1].x.tobytes()


def test_more_mistakes_are_refused_with_a_sentence(tmp_path):
    def grad(x, rng, n):
        return n * x + rng.normal(size=(n, len(x))).sum(axis=0)

    (tmp_path / "file").write_text("")
    for make, error, words in [
        (lambda: pasta_opt.minimize(lambda x, rng, n: None, [0.0], budget=100), TypeError, "but is None; does the function return it"),
        (lambda: pasta_opt.minimize(lambda x, rng, n: x + 0j, [0.0], budget=100), TypeError, "but is an array of dtype complex128"),
        (lambda: pasta_opt.minimize(lambda x, rng, n: (grad(x, rng, n), 1.0), [0.0, 0.0, 0.0], budget=100), ValueError, r"a pair is read as \(loss, gradient\)"),
        (lambda: pasta_opt.minimize(lambda x, rng, n: tuple(grad(x, rng, n)), [0.0, 0.0], budget=100), ValueError, "a gradient of two numbers has to be a list"),
        (lambda: pasta_opt.minimize(pasta_opt.Problem, [0.0], budget=100), TypeError, "not the class itself"),
        (lambda: pasta_opt.minimize(grad, None, budget=100), TypeError, "x0 must be a vector of real numbers, but is None"),
        (lambda: pasta_opt.minimize(grad, {"a": 1}, budget=100), TypeError, "but is a dict"),
        (lambda: pasta_opt.minimize(grad, [0.0], target="0.1"), TypeError, "target must be a number, but is '0.1'"),
        (lambda: pasta_opt.minimize(grad, [0.0], budget=float("inf")), ValueError, "say when to stop"),
        (lambda: pasta_opt.minimize(grad, [0.0], budget=100, certificate=pasta_opt.Variance(1.0)), ValueError, "give a target="),
        (lambda: pasta_opt.minimize(grad, [0.0], budget=100, pilot=50), ValueError, "give a target="),
        (lambda: pasta_opt.minimize(grad, [0.0], budget=100, method=pasta_opt.Sgd), TypeError, "not the class Sgd itself"),
        (lambda: pasta_opt.minimize(grad, [0.0], budget=100, method=pasta_opt.Sgd(eta="0.1")), TypeError, "sgd: eta must be a number"),
        (lambda: pasta_opt.minimize(grad, [0.0], budget=100, output=tmp_path / "file"), NotADirectoryError, "output must be a folder"),
        (lambda: pasta_opt.minimize(grad, [0.0, 0.0], budget=2_000, callback=lambda moment: moment.x > 0), TypeError, "by returning None or False"),
        (lambda: pasta_opt.compare(grad, [0.0], budget=100, methods="nothing"), ValueError, "no method is called 'nothing'"),
        (lambda: pasta_opt.plan(3), TypeError, "recipe must be the name of a recipe"),
        (lambda: pasta_opt.read_problem(tmp_path / "none.toml"), FileNotFoundError, "there is no file"),
        (lambda: pasta_opt.Table([[1.0], [2.0]], ["a", "b"]), TypeError, "y must hold real numbers"),
        (lambda: pasta_opt.Table([[1.0], [2.0]], [0, 1], degree=-1), ValueError, "degree must be a whole number from 1 to 3"),
        (lambda: pasta_opt.Table([[1.0], [2.0]], [0, 1], threads="a"), TypeError, "threads must be a whole number"),
        (lambda: pasta_opt.Table([[1.0], [2.0, 3.0]], [0, 1]), ValueError, "X must have rows and columns"),
        (lambda: pasta_opt.HardInstance(smoothness="1", gap=1, growth=1, floor=1, target=0.1), TypeError, "smoothness must be a number"),
    ]:
        with pytest.raises(error, match=words):
            make()
    assert {"PastaRegressor", "Pool", "jax", "minimize"} <= set(dir(pasta_opt))


def test_several_threads_of_python_run_at_once_with_the_bits_of_one():
    from concurrent.futures import ThreadPoolExecutor

    def grad(x, rng, n):
        return n * x + rng.normal(size=(n, len(x))).sum(axis=0)

    def run(seed):
        return pasta_opt.minimize(grad, [3.0, 0.0], budget=3_000, seed=seed).x.tobytes()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, [1, 2, 3, 4] * 2)) == [run(seed) for seed in [1, 2, 3, 4]] * 2


def test_a_result_is_verified_and_an_altered_one_is_not() -> None:
    def grad(x, rng, n):
        return n * x + rng.normal(size=(n, len(x))).sum(axis=0)

    result = pasta_opt.minimize(grad, [1.0, -0.5], target=0.3, seed=5)
    assert result.certificate.is_certified
    assert pasta_opt.verify(result, grad).startswith("verified: ")
    bound = json.dumps(json.loads(result.report)["certificate"]["bound"])
    altered = dataclasses.replace(result, report=result.report.replace(bound, "0.1", 1))
    with pytest.raises(ValueError, match=r"certificate\.bound is 0\.1 as written"):
        pasta_opt.verify(altered, grad)

    def other(x, rng, n):
        return n * x + 0.9 * rng.normal(size=(n, len(x))).sum(axis=0)

    with pytest.raises(ValueError, match="not verified"):
        pasta_opt.verify(result, other)
    plain = pasta_opt.minimize(grad, [1.0, -0.5], budget=500)
    with pytest.raises(ValueError, match="nothing to verify"):
        pasta_opt.verify(plain, grad)


def test_a_target_may_be_a_share_of_the_gradient_at_the_start():
    result = pasta_opt.minimize(many, np.zeros(3), target="20%", budget=200_000)
    measured = result.of_start
    assert measured.share == 0.2 and result.certificate.target == measured.target == 0.2 * measured.gradient
    # grad f(0) = -TRUTH; the measurement ends at a standard error of 5 %.
    assert abs(measured.gradient / np.linalg.norm(TRUTH) - 1) < 0.25
    assert result.ledger.by_role["calibration"]["samples"] == measured.samples
    assert result.certificate.is_certified and "20% of |grad f| at the start" in " ".join(repr(result).split())
    with pytest.raises(ValueError, match="a share of the gradient at the start such as 1%"):
        pasta_opt.minimize(many, np.zeros(3), target="100%")
    with pytest.raises(ValueError, match="has no start"):
        pasta_opt.certify(many, TRUTH, target="1%")
    flat = pasta_opt.Oracle(lambda x, rng: 1e6 * rng.normal(size=3), losses=False)
    with pytest.raises(ValueError, match="cannot be told from its noise"):
        pasta_opt.minimize(flat, np.zeros(3), target="1%", budget=2_000, check=False)


def by_hand(x, rng, n):
    return n * x + rng.normal(size=(n, 2)).sum(axis=0)


def test_a_certificate_that_failed_says_what_would_be_needed():
    with_all = pasta_opt.certify(by_hand, [0.01, 0.0], target=0.03)
    with_few = pasta_opt.certify(by_hand, [0.01, 0.0], target=0.03, budget=5_000)
    assert with_all.is_certified and with_all.outlook == "" and with_all.needed is None
    assert not with_few.is_certified and "needs about" in with_few.outlook
    # A plan: a factor of two either way.
    assert with_all.samples / 2 <= with_few.needed <= 2 * with_all.samples
    hopeless = pasta_opt.certify(by_hand, [0.5, 0.0], target=0.03)
    assert hopeless.needed is None and "run on" in hopeless.outlook and "run on" in str(hopeless)
    nothing = pasta_opt.certify(by_hand, [0.01, 0.0], target=0.03, budget=20)
    assert nothing.bound is None and nothing.needed > 1_000 and "no bound with" in nothing.outlook


def test_attempts_of_a_loop_share_delta():
    is_done = pasta_opt.StopWhenCertified(by_hand, 0.2, 0.1, every=2)
    point = np.array([5.0, 0.0])
    assert [is_done(point) for _ in range(6)] == [False] * 6
    assert is_done.attempts == 3 and is_done.calls == 6
    deltas = [certificate.delta for _, certificate in is_done.history]
    assert np.allclose(deltas, [0.1 / 2, 0.1 / 6, 0.1 / 12])
    # Samples of its own at the same point, too.
    assert len({certificate.bound for _, certificate in is_done.history}) == 3
    assert [is_done(point / 100) for _ in range(2)] == [False, True]
    assert is_done.certificate.bound <= 0.2 and "certified, bound" in repr(is_done) and "90 % confidence" in repr(is_done)
    with pytest.raises(ValueError, match="between 0 and 1"):
        pasta_opt.StopWhenCertified(by_hand, 0.1, 1.5)
    with pytest.raises(TypeError, match="x0 must be"):
        pasta_opt.StopWhenCertified(by_hand, 0.1, every=1)()


def test_all_attempts_of_loops_are_wrong_together_at_most_delta():
    # At |g| = 1.02 target every certificate is false. 60 loops of three attempts: with delta = 0.05, ten false ones or more have probability 1e-3.
    point = [0.306, 0.0]
    false = 0
    for seed in range(60):
        is_done = pasta_opt.StopWhenCertified(by_hand, 0.3, every=1, budget=6_000, seed=1000 * seed, certificate=pasta_opt.Variance(2.0))
        false += any(is_done(point) for _ in range(3))
    assert false < 10


def test_the_package_shows_what_is_public():
    shown = dir(pasta_opt)
    assert {"minimize", "certify", "StopWhenCertified", "vi", "numpyro", "jax"} <= set(shown)
    assert not [name for name in shown if name.startswith("_") and name != "__version__"]


def test_results_have_the_names_of_scipy():
    result = pasta_opt.minimize(by_hand, [1.0, 0.0], target=0.3)
    assert result.success and result.message == result.stop.meaning
    assert (result.nit, result.nfev) == (result.steps, result.ledger.evaluations)
    assert not pasta_opt.minimize(by_hand, [1.0, 0.0], target=1e-6, budget=2_000).success
    assert pasta_opt.minimize(by_hand, [1.0, 0.0], budget=2_000).success
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    (line,) = result.plot().lines
    assert (line.get_xdata() == result.trace["samples"]).all() and (line.get_ydata() == result.trace["distance"]).all()


def test_a_start_of_one_coordinate_may_be_a_number():
    def grad(x, rng, n):
        return n * x + rng.normal(size=n).sum()

    results = [pasta_opt.minimize(grad, x0, budget=2_000) for x0 in (3.0, [3.0], np.float32(3.0), 3)]
    assert len({result.x.tobytes() for result in results}) == 1 and results[0].x.shape == (1,)


def test_exact_runs_on_a_table_and_goes_on_where_it_was_stopped(tmp_path):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(80, 3))
    labels = np.where(features @ [1.0, -1.0, 0.5] + rng.normal(size=80) > 0, 1.0, -1.0)
    table = pasta_opt.Table(features, labels, loss="logistic", penalty=1e-3)
    whole = pasta_opt.minimize(table, table.start, target=1e-9, method="exact")
    assert whole.stop.kind == "certified" and whole.method == "exact"
    assert whole.certificate.bound <= 1e-9 and whole.ledger.samples < 80 * 60
    # It ends by itself.
    assert pasta_opt.minimize(table, table.start, method=pasta_opt.methods.Exact()).stop.kind == "certified"
    short = pasta_opt.minimize(table, table.start, target=1e-9, method="exact", budget=480, output=tmp_path / "run")
    assert short.stop.kind == "out-of-budget"
    resumed = pasta_opt.resume(tmp_path / "run", table, budget=1e6)
    assert resumed.stop.kind == "certified" and np.array_equal(resumed.x, whole.x)
    with pytest.raises(ValueError, match="exact is for tables of data"):
        pasta_opt.minimize(lambda x, rng: x, [1.0], budget=1000, method="exact")


def test_where_rounds_have_a_price_the_oracle_is_asked_less_often():
    calls = []

    def oracle(x, rng, n):
        calls.append(n)
        return n * x + rng.normal(size=(n, 2)).sum(axis=0)

    def run(**keywords):
        calls.clear()
        return pasta_opt.minimize(oracle, [3.0, -2.0], budget=40_000, **keywords), len(calls)

    (free, often), (wide, seldom) = run(), run(round_cost=64)
    assert free.ledger.rounds is None and 0 < wide.ledger.rounds <= seldom
    assert 5 * seldom < often
    # |grad f| = |x|: both end near the minimiser.
    assert max(np.linalg.norm(free.x), np.linalg.norm(wide.x)) < 0.1
    again, _ = run(round_cost=64)
    assert (again.x == wide.x).all() and again.ledger == wide.ledger
    with pytest.raises(ValueError, match="round_cost must be a whole number from 0"):
        run(round_cost=-1)
