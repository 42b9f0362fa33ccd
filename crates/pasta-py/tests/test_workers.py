"""Whoever computes the oracle, the bits are those of one process."""

import concurrent.futures
import contextlib
import functools
import multiprocessing
import multiprocessing.pool
import os
import signal
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pasta_opt
import pytest
from pasta_opt import _pool

TRUTH = np.array([1.0, -2.0, 3.0])
HERE = os.getpid()

try:
    import cloudpickle

    # pytest has made up a name for this module, under which no other process finds it.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
except ImportError:
    cloudpickle = None


def many(x, rng, n):
    a = rng.normal(size=(n, 3))
    residual = a @ x - a @ TRUTH - rng.normal(size=n)
    return residual**2 / 2, residual @ a


class Mean(pasta_opt.Problem):
    """Its pickle is larger than what tasks carry."""

    def __init__(self, seed=0):
        self.rows = np.random.default_rng(seed).normal(size=(2_000, 3)) + TRUTH

    def gradient(self, x, rng):
        return x - self.rows[rng.integers(len(self.rows))]


class Deadly:
    """Ends its worker at one of its calls, `times` times in all."""

    def __init__(self, folder, times=1, after=3):
        self.folder, self.times, self.after, self.calls = folder, times, after, 0

    def __call__(self, x, rng, n):
        self.calls += 1
        if os.getpid() != HERE and self.calls > self.after:
            for time in range(self.times):
                try:
                    os.close(os.open(os.path.join(self.folder, f"death-{time}"), os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return many(x, rng, n)


def loky_executor(count=2):
    return pytest.importorskip("loky").get_reusable_executor(count)


def context(name):
    if name == "spawn" and cloudpickle is None:
        pytest.skip("needs cloudpickle")
    return multiprocessing.get_context(name)


WORKERS = {
    "processes": lambda exit: 2,
    "threads": lambda exit: exit.enter_context(ThreadPoolExecutor(3)),
    "forked": lambda exit: exit.enter_context(ProcessPoolExecutor(2, mp_context=context("fork"))),
    "spawned": lambda exit: exit.enter_context(ProcessPoolExecutor(2, mp_context=context("spawn"))),
    "loky": lambda exit: loky_executor(),
    "map": lambda exit: map,
    "map of processes": lambda exit: exit.enter_context(context("fork").Pool(2)).map,
    "map of threads": lambda exit: exit.enter_context(multiprocessing.pool.ThreadPool(2)).map,
    "map of an executor": lambda exit: exit.enter_context(ProcessPoolExecutor(2, mp_context=context("fork"))).map,
}


@functools.cache
def alone():
    return answers(None)


def answers(workers):
    """What the functions that take workers answer, as bits."""
    both = [pasta_opt.Oracle(many, losses=True), Mean()]
    run = [pasta_opt.minimize(oracle, np.zeros(3), budget=4_000, workers=workers) for oracle in both]
    certificate = pasta_opt.certify(both[0], TRUTH, target=0.5, workers=workers)
    found = pasta_opt.calibrate(both[1], np.zeros(3), budget=6_400, workers=workers)
    compared = pasta_opt.compare(both[0], np.zeros(3), budget=1_000, methods=["dog"], seeds=1, workers=workers)
    cost = pasta_opt.forecast(both[0], np.zeros(3), target=0.3, samples=3_000, workers=workers)
    return [one.x.tobytes() for one in run], [one.ledger for one in run], certificate, found, compared, cost


@pytest.mark.parametrize("name", WORKERS)
def test_any_workers_give_the_bits_of_one_process(name):
    with contextlib.ExitStack() as exit:
        assert answers(WORKERS[name](exit)) == alone()


def run(oracle, workers, **keywords):
    method = pasta_opt.methods.Sgd(eta=0.01, steps=30, batch=900)
    return pasta_opt.minimize(oracle, np.zeros(3), method=method, check=False, workers=workers, **keywords)


@pytest.mark.parametrize("name", ["processes", "loky"])
def test_a_worker_that_dies_is_replaced_and_its_blocks_are_computed_again(name, tmp_path):
    workers = 2 if name == "processes" else loky_executor()
    oracle = pasta_opt.Oracle(Deadly(str(tmp_path), times=2, after=10), losses=True, name="deadly")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        together = run(oracle, workers)
    assert len(list(tmp_path.iterdir())) == 2
    one_process = run(pasta_opt.Oracle(many, losses=True, name="deadly"), None)
    assert together.x.tobytes() == one_process.x.tobytes() and together.ledger == one_process.ledger
    if name == "processes":
        assert any("a worker died: its blocks are computed again" in str(one.message) for one in said)


@pytest.mark.parametrize("name", ["processes", "forked", "loky"])
def test_an_oracle_that_kills_every_worker_ends_the_run(name, tmp_path):
    executor = None
    if name != "processes":
        executor = loky_executor() if name == "loky" else ProcessPoolExecutor(2, mp_context=context("fork"))
    oracle = pasta_opt.Oracle(Deadly(str(tmp_path), times=1_000, after=0), losses=True, name="deadly")
    with warnings.catch_warnings(), pytest.raises(BrokenProcessPool):
        warnings.simplefilter("ignore")
        run(oracle, 2 if executor is None else executor)
    # A pool of the standard library is broken by the first death; the others are replaced, and die with the same blocks.
    deaths = len(list(tmp_path.iterdir()))
    assert 1 <= deaths <= 2 if name == "forked" else _pool.REPEATS < deaths <= 2 * (_pool.REPEATS + 1)


def far(x, rng, n):
    raise LookupError("far away")


class Odd(Exception):
    """Its pickle cannot be read."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def odd(x, rng, n):
    raise Odd("one", "two")


@pytest.mark.parametrize("name", WORKERS)
def test_what_the_oracle_raises_arrives_with_its_traceback_and_is_not_asked_again(name, tmp_path):
    with contextlib.ExitStack() as exit:
        workers = WORKERS[name](exit)
        with pytest.raises(LookupError, match="far away") as caught:
            run(pasta_opt.Oracle(far, losses=False), workers)
        in_this_process = name in ("threads", "map", "map of threads")
        if not in_this_process:
            assert "in far" in str(caught.value.__cause__)
            with pytest.raises(RuntimeError, match="Odd: one and two"):
                run(pasta_opt.Oracle(odd, losses=False), workers)
        # The workers are as good as before.
        assert run(pasta_opt.Oracle(many, losses=True), workers).stop.kind == "planned-end"


def test_a_large_oracle_is_sent_once_to_a_worker_and_a_small_one_with_every_task():
    sent = []

    def mapping(function, tasks):
        sent.extend(task[1] for task in tasks)
        return map(function, tasks)

    pasta_opt.minimize(Mean(1), np.zeros(3), method=pasta_opt.methods.Sgd(eta=0.01, steps=30, batch=100), check=False, workers=mapping)
    carrying = [data for data in sent if data is not None]
    assert len(sent) == 30 * 13 + 13 and all(len(data) > _pool.CARRIED for data in carrying)
    # The first question, whose tasks all come back before the oracle is sent.
    assert len(carrying) == 13
    sent.clear()
    run(pasta_opt.Oracle(many, losses=True), mapping)
    assert None not in sent


def test_threads_share_an_oracle_that_has_no_pickle():
    scale = 2.0
    with ThreadPoolExecutor(2) as threads:
        together = run(pasta_opt.Oracle(lambda x, rng, n: scale * many(x, rng, n)[1], losses=False), threads)
        assert threads.submit(int).result() == 0
    assert together.x.tobytes() == run(pasta_opt.Oracle(lambda x, rng, n: scale * many(x, rng, n)[1], losses=False), None).x.tobytes()
    assert _pool._given == {}


def test_points_are_read_only_in_workers():
    def writing(x, rng, n):
        x[0] = 1.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        run(pasta_opt.Oracle(writing, losses=False), 2)


def test_what_is_no_workers_is_refused():
    class Client:
        def get_executor(self):
            raise NotImplementedError

    with pytest.raises(TypeError, match=r"a function like map, but is .*; give client.get_executor\(\)"):
        pasta_opt.Pool(many, Client())
    with pytest.raises(TypeError, match="3 answers to"):
        run(pasta_opt.Oracle(many, losses=True), lambda function, tasks: [1, 2, 3])
    with ThreadPoolExecutor(1) as ended:
        pass
    with pytest.raises(RuntimeError, match="after shutdown"):
        run(pasta_opt.Oracle(many, losses=True), ended)
    with pytest.raises(concurrent.futures.BrokenExecutor), ProcessPoolExecutor(1, mp_context=context("fork")) as broken:
        with pytest.raises(BrokenProcessPool):
            broken.submit(os._exit, 1).result()
        run(pasta_opt.Oracle(many, losses=True), broken)
