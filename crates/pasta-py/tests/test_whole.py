"""The installed package beside the program: the same runs, the same bits. And runs that are answered from outside."""

import concurrent.futures
import json
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pasta_opt
import pytest

TRUTH = np.array([1.0, -2.0, 3.0])


def many(x, rng, n):
    a = rng.normal(size=(n, 3))
    residual = a @ x - a @ TRUTH - rng.normal(size=n)
    return residual**2 / 2, residual @ a


def one(x, rng):
    a = rng.normal(size=3)
    return (a @ x - a @ TRUTH - rng.normal()) * a


ORACLES = {
    "many": pasta_opt.Oracle(many, losses=True),
    "one": pasta_opt.Oracle(one, losses=False),
}

PROBLEM = """
seed = 5
budget = 20000
[problem]
name = "sine-bowl"
dimension = 3
start = [1.0, -2.0, 0.5]
[noise]
growth = 1.0
floor = 1.0
tail = "gaussian"
"""

RECIPES = {
    "auto": ('name = "auto"', "auto"),
    "adam": ('name = "adam"\neta = 0.01\nsteps = 500\nbatch = 4', pasta_opt.methods.Adam(eta=0.01, steps=500, batch=4)),
    "storm": (
        'name = "storm"\neta = 0.01\nmomentum = 0.3\nsteps = 300\nbatch = 2',
        pasta_opt.methods.Storm(eta=0.01, momentum=0.3, steps=300, batch=2),
    ),
}


def program(*arguments, cwd):
    said = subprocess.run([sys.executable, "-m", "pasta_opt", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 5), said.stderr
    return json.loads(said.stdout)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_problem_file_gives_the_bits_of_the_program(recipe, tmp_path):
    text, method = RECIPES[recipe]
    (tmp_path / "p.toml").write_text(f"{PROBLEM}[recipe]\n{text}\n")
    wanted = program("solve", "p.toml", "--json", cwd=tmp_path)
    problem = pasta_opt.read_problem(tmp_path / "p.toml")
    result = pasta_opt.minimize(problem, problem.start, method=method, seed=5, budget=20_000)
    assert result.x.tolist() == wanted["point"]
    assert result.ledger.samples == wanted["ledger"]["samples"] and result.stop.kind == wanted["stop"]["kind"]


def test_a_table_gives_the_bits_of_the_program(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 4))
    labels = rows @ [1.0, 2.0, 3.0, 4.0] + rng.standard_t(3, size=500)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "y.npy", labels)
    text = 'budget = 100000\n[problem]\ntable = "x.npy"\nlabels = "y.npy"\nloss = "huber"\n[recipe]\nname = "auto"\n'
    (tmp_path / "p.toml").write_text(text)
    wanted = program("solve", "p.toml", "--json", cwd=tmp_path)
    table = pasta_opt.Table(rows, labels, loss="huber")
    for problem in (table, pasta_opt.read_problem(tmp_path / "p.toml")):
        assert pasta_opt.minimize(problem, problem.start, budget=100_000).x.tolist() == wanted["point"]


def test_a_hard_instance_is_that_of_the_theorem():
    hard = pasta_opt.HardInstance(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001)
    assert hard.T == 8 and hard.dim == 9 and hard.D == 250
    x = np.array([300.0, 0.7, -0.9, 0, 0, 0, 0, 0, 0])
    x[1:] *= hard.lambda_
    # The mean over the draw is the gradient.
    mean = hard.p * hard.stochastic_gradient(x, 1) + (1 - hard.p) * hard.stochastic_gradient(x, 0)
    assert np.allclose(mean, hard.gradient(x), rtol=1e-9, atol=1e-12)
    step = 1e-4 * np.eye(9)
    slopes = [(hard.value(x + e) - hard.value(x - e)) / 2e-4 for e in step]
    assert np.allclose(slopes, hard.gradient(x), atol=1e-6)
    assert hard.progress(x, 0.5) == 2 and hard.mask(x).shape == (8,)
    assert hard.bound == pasta_opt.lower_bound(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001).bound
    # The oracle in Rust and the same numpy function by hand take the same steps where there is no noise: nothing of the chain is seen at the start.
    method = pasta_opt.methods.Sgd(eta=1.0, steps=5)
    own = pasta_opt.minimize(hard, hard.start, method=method)
    by_hand = pasta_opt.minimize(pasta_opt.Oracle(lambda x, rng: hard.gradient(x), losses=False), np.zeros(9), method=method)
    assert own.x.tobytes() == by_hand.x.tobytes() and own.x[0] > 0
    with pytest.raises(ValueError, match="T >= 2"):
        pasta_opt.HardInstance(smoothness=1, gap=1, growth=1, floor=1, target=1)
    with pytest.raises(ValueError, match="not both"):
        pasta_opt.HardInstance(gap=1, growth=1, floor=1, target=1)
    with pytest.raises(ValueError, match="coordinates"):
        hard.gradient(np.zeros(3))


def test_a_problem_of_the_library_is_an_oracle_everywhere(tmp_path):
    (tmp_path / "p.toml").write_text(PROBLEM)
    problem = pasta_opt.read_problem(tmp_path / "p.toml")
    assert pasta_opt.calibrate(problem, problem.start, budget=10_000).smoothness.value > 0
    assert not pasta_opt.certify(problem, problem.start, target=0.01, budget=20_000).is_certified
    with pytest.raises(ValueError, match="3 coordinates, but the start has 2"):
        pasta_opt.minimize(problem, [0.0, 0.0], budget=100)
    with pytest.raises(ValueError, match="p.toml:"):
        (tmp_path / "p.toml").write_text("[problem]\nname = 3\n")
        pasta_opt.read_problem(tmp_path / "p.toml")


@pytest.mark.parametrize("form", ORACLES)
@pytest.mark.parametrize("keywords", [{"budget": 6_000}, {"target": 0.4}], ids=["budget", "target"])
def test_asking_and_telling_gives_the_bits_of_minimize(form, keywords):
    oracle = ORACLES[form]
    wanted = pasta_opt.minimize(oracle, np.zeros(3), **keywords)
    run = pasta_opt.AskTell(np.zeros(3), losses=oracle.losses, batched=oracle.batched, **keywords)
    with concurrent.futures.ThreadPoolExecutor(3) as workers:
        while (blocks := run.ask()) is not None:
            run.tell(list(workers.map(lambda block: block.answer(oracle), blocks)))
    result = run.result()
    assert result.x.tobytes() == wanted.x.tobytes() and result.ledger == wanted.ledger
    assert result.stop == wanted.stop and result.certificate == wanted.certificate


def answered(block):
    return block.answer(ORACLES["many"])


def test_samples_can_be_farmed_out_to_processes():
    wanted = pasta_opt.minimize(ORACLES["many"], np.zeros(3), budget=4_000)
    run = pasta_opt.AskTell(np.zeros(3), losses=True, budget=4_000)
    block = run.ask()[0]
    assert answered(pickle.loads(pickle.dumps(block))).tobytes() == answered(block).tobytes()
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=__import__("multiprocessing").get_context("fork")) as workers:
        while (blocks := run.ask()) is not None:
            run.tell(list(workers.map(answered, blocks)))
    assert run.result().x.tobytes() == wanted.x.tobytes()


def test_telling_wrongly_is_refused():
    run = pasta_opt.AskTell(np.zeros(3), budget=1_000)
    with pytest.raises(RuntimeError, match="call ask"):
        run.tell([])
    blocks = run.ask()
    with pytest.raises(ValueError, match="were asked for, but 0 were told"):
        run.tell([])
    with pytest.raises(ValueError, match="expected 3 numbers"):
        run.tell([[1.0]] * len(blocks))
    with pytest.raises(RuntimeError, match="goes on"):
        run.result()
    run.stop()
    assert run.ask() is None
    assert run.result().stop.kind == "interrupted"
    with pytest.raises(RuntimeError, match="the run has ended"):
        run.tell([np.zeros(3)] * len(blocks))
    with pytest.raises(ValueError, match="say when to stop"):
        pasta_opt.AskTell([0.0])


def test_answers_that_are_something_else_are_refused():
    run = pasta_opt.AskTell(np.zeros(3), budget=1_000, losses=True)
    oracle = pasta_opt.Oracle(lambda x, rng, n: (n * (x @ x) / 2 + rng.normal(), n * x + rng.normal(size=3)), losses=True)
    blocks = run.ask()
    while not any(block.losses for block in blocks):
        run.tell([block.answer(oracle) for block in blocks])
        blocks = run.ask()
    told = [block.answer(oracle) for block in blocks]
    place = next(place for place, block in enumerate(blocks) if block.losses)
    points = len(blocks[place].points)
    shape = (points - blocks[place].differences, 3)
    loss, total = told[place][-points:], told[place][:-points].reshape(shape)
    for answer, error, words in [
        ((total, loss), ValueError, rf"pair \(losses, sums\), and there are {points} losses, but the first part has shape \({shape[0]}, 3\)"),
        ((loss, total.T), ValueError, rf"sums have shape \({shape[0]}, 3\), but the second part has shape \(3, {shape[0]}\)"),
        ((loss, 1j * total), TypeError, "the sums must be an array of real numbers, but has dtype complex128"),
        ((loss, np.ma.masked_array(total, total > 0)), TypeError, "the sums must be a plain array, but is a masked one"),
        ((1j * loss, total), TypeError, "the losses must be an array of real numbers"),
    ]:
        with pytest.raises(error, match=words):
            run.tell([*told[:place], answer, *told[place + 1 :]])
    run.tell([*told[:place], (loss, total), *told[place + 1 :]])
    run.stop()
    plain = pasta_opt.AskTell(np.zeros(3), budget=1_000)
    with pytest.raises(ValueError, match="a row for each sum"):
        plain.tell([np.ones((3, 1))] * len(plain.ask()))
    plain.stop()
    for oracle in (lambda x, rng: np.ma.masked_array(x, x < 1), lambda x, rng: (np.ma.masked_array([1.0], [True]), x)):
        with pytest.raises(TypeError, match="plain array, but is a masked one"):
            pasta_opt.minimize(oracle, np.zeros(3), budget=100)
    with pytest.raises(TypeError, match="y must hold real numbers, but holds complex ones"):
        pasta_opt.Table(np.ones((2, 1)), [1j, 2.0])
    with pytest.raises(TypeError, match="x0 must be a plain array"):
        pasta_opt.minimize(lambda x, rng: x, np.ma.masked_array([1.0, 2.0], [True, False]), budget=100)


def test_plans_are_those_of_the_program(tmp_path):
    flags = {"smoothness": 3, "gap": 1.6, "growth": 9, "floor": 1, "target": 0.1}
    wanted = program("plan", "smooth", *(f"--{name}={value}" for name, value in flags.items()), "--json", cwd=tmp_path)
    planned = pasta_opt.plan("smooth", **flags)
    assert vars(planned).keys() | {"format"} == wanted.keys()
    assert planned.samples == wanted["samples"] and planned.promise.statement == wanted["promise"]["statement"]
    for recipe, constants, words in [
        ("nothing", {}, "no recipe is called"),
        ("smooth", {"gap": 1}, "needs"),
        ("smooth", {**flags, "mu": 1}, "does not use mu"),
        ("smooth", {**flags, "sigma": 1}, "no constant"),
        ("smooth", {**flags, "gap": -1}, "must be finite and not negative"),
    ]:
        with pytest.raises(ValueError, match=words):
            pasta_opt.plan(recipe, **constants)


def test_a_forecast_covers_the_run():
    found = pasta_opt.forecast(ORACLES["many"], np.zeros(3), target=0.15, samples=30_000)
    assert found.pilot.samples <= 30_000 and found.worst_case is None
    run = pasta_opt.minimize(ORACLES["many"], np.zeros(3), target=0.15)
    # It costs nothing, and comes early. One run of this seed; most would lie there.
    assert "forecast" not in run.ledger.by_role and run.forecast.after < run.ledger.samples / 4
    assert run.forecast.low <= run.ledger.samples <= run.forecast.high
    silent = pasta_opt.minimize(ORACLES["many"], np.zeros(3), target=0.15, pilot=None)
    assert silent.forecast is None and silent.forecast_silent == "none was asked for"
    assert (silent.x == run.x).all() and silent.ledger == run.ledger
    recipe = pasta_opt.methods.Smooth(smoothness=1, gap=7, growth=2, floor=8, target=0.5)
    with_theory = pasta_opt.forecast(ORACLES["many"], np.zeros(3), target=0.5, method=recipe, samples=20_000)
    assert with_theory.worst_case > 1e5 and with_theory.method == "smooth"


def test_a_comparison_is_that_of_the_program(tmp_path):
    (tmp_path / "p.toml").write_text(PROBLEM.replace("budget = 20000\n", ""))
    wanted = program("compare", "p.toml", "--budget", "500", "--seeds", "2", "--methods", "auto,dog", "--json", cwd=tmp_path)
    assert wanted["judged_by"] == "formula"
    problem = pasta_opt.read_problem(tmp_path / "p.toml")
    found = pasta_opt.compare(problem, problem.start, budget=500, seeds=2, seed=5, methods=["auto", "dog"])
    steps = {(row["method"], row["batch"]): [run["samples"] for run in row["runs"]] for row in wanted["methods"]}
    for row in found.methods:
        assert [run.samples for run in row.runs] == steps[row.method, row.batch]
    both = pasta_opt.compare(ORACLES["many"], np.zeros(3), target=0.5, budget=20_000, seeds=2, methods=["auto", "adam"], grid=True)
    assert both.judged_by == "samples" and both.target == 0.5 and both.methods[0].reached == 2
    with pytest.raises(ValueError, match="say when runs end"):
        pasta_opt.compare(ORACLES["many"], np.zeros(3))
    with pytest.raises(ValueError, match="no method is called"):
        pasta_opt.compare(ORACLES["many"], np.zeros(3), budget=100, methods=["nothing"])
    with pytest.raises(ZeroDivisionError):
        pasta_opt.compare(lambda x, rng: 1 // 0, np.zeros(3), budget=100)


def test_a_saved_result_goes_on_and_pickles(tmp_path):
    method = pasta_opt.methods.Adam(eta=0.01, steps=400, batch=8)
    whole = pasta_opt.minimize(ORACLES["many"], np.zeros(3), method=method)
    half = pickle.loads(pickle.dumps(pasta_opt.minimize(ORACLES["many"], np.zeros(3), method=method, budget=1_600)))
    half.save(tmp_path / "run")
    with pytest.raises(FileExistsError, match="another folder"):
        half.save(tmp_path / "run")
    assert pasta_opt.resume(tmp_path / "run", ORACLES["many"]).x.tobytes() == whole.x.tobytes()


def test_a_result_has_a_curve_and_a_frame():
    result = pasta_opt.minimize(ORACLES["many"], np.zeros(3), budget=4_000)
    page = result._repr_html_()
    assert "<svg" in page and "<polyline" in page and "samples" in page
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["step", "samples", "evaluations", "distance"]


def test_progress_is_shown_now_and_then_and_stops_nothing(capsys):
    seen = []
    method = pasta_opt.methods.Sgd(eta=0.001, steps=2_000)
    result = pasta_opt.minimize(ORACLES["one"], np.zeros(3), method=method, progress=lambda moment: seen.append(moment) or True)
    assert result.stop.kind == "planned-end" and 1 <= len(seen) < 2_000
    every = []
    pasta_opt.minimize(ORACLES["one"], np.zeros(3), method=method, progress=seen.append, callback=lambda m: every.append(m.step) or m.step == 10)
    assert every == list(range(1, 11))
    pasta_opt.minimize(ORACLES["one"], np.zeros(3), method=method, progress=True)
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="progress must be"):
        pasta_opt.minimize(ORACLES["one"], np.zeros(3), method=method, progress=3)


def test_control_c_stops_work_that_never_calls_python(tmp_path):
    code = """
import signal, numpy as np, pasta_opt
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 40))
table = pasta_opt.Table(X, X @ rng.normal(size=40), loss="absolute")
print("ready", flush=True)
try:
    pasta_opt.minimize(table, table.start, method=pasta_opt.methods.Sgd(eta=1e-9, batch=100_000), budget=10**15)
except KeyboardInterrupt:
    print("interrupted")
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=60)[0] == "interrupted\n"


def slow(x, rng, n):
    """In a worker of a pool or here."""
    if x[0] > 1e3:
        raise LookupError("far away")
    return many(x, rng, n)


@pytest.mark.parametrize("name", ORACLES)
def test_a_pool_of_processes_gives_the_bits_of_one(name):
    method = pasta_opt.methods.Storm(eta=0.01, momentum=0.3, steps=20, batch=700)
    alone = [pasta_opt.minimize(ORACLES[name], np.zeros(3), budget=4_000), pasta_opt.minimize(ORACLES[name], np.zeros(3), method=method)]
    for workers in (1, 3):
        with pasta_opt.Pool(ORACLES[name], workers) as pool:
            together = [pasta_opt.minimize(pool, np.zeros(3), budget=4_000), pasta_opt.minimize(pool, np.zeros(3), method=method)]
            assert pasta_opt.certify(pool, TRUTH, target=0.5) == pasta_opt.certify(ORACLES[name], TRUTH, target=0.5)
        for one_process, several in zip(alone, together, strict=True):
            assert several.x.tobytes() == one_process.x.tobytes() and several.ledger == one_process.ledger
    result = pasta_opt.minimize(many, np.zeros(3), budget=4_000, workers=2)
    assert result.x.tobytes() == pasta_opt.minimize(many, np.zeros(3), budget=4_000).x.tobytes()


def test_what_a_worker_raises_arrives_here_and_the_pool_is_as_good_as_before():
    method = pasta_opt.methods.Sgd(eta=1.0, steps=10, batch=300)
    with pasta_opt.Pool(pasta_opt.Oracle(slow, losses=True, name="p"), 2) as pool:
        with pytest.raises(LookupError, match="far away") as caught:
            pasta_opt.minimize(pool, np.full(3, 1e4), method=method)
        assert "slow" in str(caught.value.__cause__)
        # The pool is as good as before.
        again = pasta_opt.minimize(pool, np.zeros(3), method=pasta_opt.methods.Sgd(eta=0.01, steps=30, batch=300), check=False)
    whole = pasta_opt.minimize(pasta_opt.Oracle(slow, losses=True, name="p"), np.zeros(3), method=pasta_opt.methods.Sgd(eta=0.01, steps=30, batch=300), check=False)
    assert again.x.tobytes() == whole.x.tobytes()


def test_what_no_pool_can_compute_is_refused():
    for oracle, workers, error, words in [
        (3, 2, TypeError, "a function, an Oracle or a Problem"),
        (pasta_opt.HardInstance(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001), 2, TypeError, "of Python"),
        (many, 0, ValueError, "workers must be a whole number"),
        (many, True, ValueError, "workers must be a whole number"),
        (many, 1.5, TypeError, "workers must be a number of processes"),
    ]:
        with pytest.raises(error, match=words):
            pasta_opt.Pool(oracle, workers)


def test_a_run_that_waits_in_one_thread_is_stopped_by_another():
    code = """
import threading, numpy as np, pasta_opt
run = pasta_opt.AskTell(np.zeros(3), method=pasta_opt.Sgd(eta=0.001, batch=2), budget=10**9)
asked = threading.Event()

def answer():
    while (blocks := run.ask()) is not None:
        try:
            run.tell([[block.count * x for x in block.points] for block in blocks])
        except (RuntimeError, ValueError):
            pass  # It was stopped between the question and the answer.
        asked.set()

worker = threading.Thread(target=answer)
worker.start()
asked.wait()
run.stop()
worker.join()
print(run.result().stop.kind)
"""
    for _ in range(3):
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
        assert (said.stdout, said.stderr) == ("interrupted\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("main", [True, False])
def test_workers_and_what_they_started_end_with_their_parent(end, main, tmp_path):
    """In the middle of a block, which takes longer than this test."""
    code = f"""
import os, signal, subprocess, sys, threading, time
import numpy as np, pasta_opt

# Whoever runs these tests may ignore it, as nohup does.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def forever(x, rng, n):
    child = subprocess.Popen(["sleep", "1000"])
    open(os.path.join({str(tmp_path)!r}, f"{{os.getpid()}}"), "w").write(str(child.pid))
    while True:
        sum(range(1000))

def run():
    with pasta_opt.Pool(pasta_opt.Oracle(forever, losses=False, name="forever"), workers=2) as pool:
        pasta_opt.minimize(pool, np.zeros(2), budget=10_000, check=False)

if {main}:
    run()
else:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
"""
    run = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    try:
        while not (files := [file for file in tmp_path.iterdir() if file.read_text()]):
            assert run.poll() is None and time.monotonic() < until
            time.sleep(0.02)
    finally:
        run.send_signal(end)
        run.wait()
    assert str(run.pid) not in [file.name for file in files]
    pids = [int(pid) for file in files for pid in (file.name, file.read_text())]

    def alive(pid):
        try:
            return ") Z" not in open(f"/proc/{pid}/stat").read()
        except FileNotFoundError:
            return False

    while any(alive(pid) for pid in pids):
        assert time.monotonic() < until, pids
        time.sleep(0.02)


def test_thousands_of_threads_are_not_started_and_change_no_bit():
    method = pasta_opt.methods.Sgd(eta=0.01, steps=3, batch=8)
    with pytest.warns(RuntimeWarning, match="threads = 4096 is far more than this machine has processors"):
        many_threads = pasta_opt.minimize(many, np.zeros(3), method=method, threads=4096)
    assert many_threads.x.tobytes() == pasta_opt.minimize(many, np.zeros(3), method=method, threads=1).x.tobytes()
