"""Engines that people have, as workers, with one of them killed in the middle: `cargo xtask py --engines` installs them."""

import os
import subprocess
import sys

import pytest

#: What every engine runs, as a script of its own for those that begin processes by name.
MODULE = '''
import os, signal, sys
import numpy as np
import pasta_opt

TRUTH = np.array([1.0, -2.0, 3.0])


def many(x, rng, n):
    a = rng.normal(size=(n, 3))
    residual = a @ x - a @ TRUTH - rng.normal(size=n)
    return residual**2 / 2, residual @ a


class Deadly:
    """Ends one of its workers, at its eleventh call there."""

    def __init__(self, caller, flag):
        self.caller, self.flag, self.calls = caller, flag, 0

    def __call__(self, x, rng, n):
        self.calls += 1
        if self.flag and os.getpid() != self.caller and self.calls > 10:
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return many(x, rng, n)
            os.kill(os.getpid(), signal.SIGKILL)
        return many(x, rng, n)


def run(workers=None, flag=""):
    """The bits of a run, of a certificate and of a calibration."""
    oracle = pasta_opt.Oracle(Deadly(os.getpid(), flag), losses=True, name="engines")
    method = pasta_opt.methods.Sgd(eta=0.01, steps=40, batch=900)
    result = pasta_opt.minimize(oracle, np.zeros(3), method=method, check=False, workers=workers)
    certificate = pasta_opt.certify(oracle, TRUTH, target=0.5, workers=workers)
    found = pasta_opt.calibrate(oracle, np.zeros(3), budget=6_400, workers=workers)
    return result.x.tobytes(), result.ledger, certificate, found
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The module, where workers find it as well."""
    (tmp_path / "engine_oracles.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    sys.modules.pop("engine_oracles", None)
    import engine_oracles

    yield engine_oracles
    sys.modules.pop("engine_oracles", None)


def test_dask_gives_the_bits_of_one_process_also_when_a_worker_is_killed(module, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert module.run(client.get_executor()) == module.run()
        assert module.run(client.get_executor(), str(tmp_path / "flag")) == module.run()
        assert (tmp_path / "flag").exists()


def test_loky_gives_the_bits_of_one_process_also_when_a_worker_is_killed(module, tmp_path):
    loky = pytest.importorskip("loky")
    assert module.run(loky.get_reusable_executor(2)) == module.run()
    assert module.run(loky.get_reusable_executor(2), str(tmp_path / "flag")) == module.run()
    assert (tmp_path / "flag").exists()


def test_ray_gives_the_bits_of_one_process_also_when_a_worker_is_killed(module, tmp_path):
    ray = pytest.importorskip("ray")
    from ray.util.multiprocessing import Pool

    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}})
    try:
        assert module.run(Pool(2).map) == module.run()
        # Ray replaces an actor if it is told so.
        assert module.run(Pool(2, ray_remote_args={"max_restarts": -1, "max_task_retries": -1}).map, str(tmp_path / "flag")) == module.run()
        assert (tmp_path / "flag").exists()
    finally:
        ray.shutdown()


@pytest.mark.parametrize("killed", [False, True])
def test_mpi4py_gives_the_bits_of_one_process_and_a_killed_rank_ends_the_job(module, tmp_path, killed):
    pytest.importorskip("mpi4py")
    script = tmp_path / "script.py"
    flag = str(tmp_path / "flag") if killed else ""
    script.write_text(f"""
from mpi4py.futures import MPIPoolExecutor
import engine_oracles

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        assert engine_oracles.run(executor, {flag!r}) == engine_oracles.run()
    print("same bits")
""")
    command = ["mpiexec", "-n", "3", "--oversubscribe", "--allow-run-as-root", sys.executable, "-m", "mpi4py.futures", str(script)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if killed:
        # That is MPI: a job ends with any of its ranks.
        assert said.returncode != 0 and "same bits" not in said.stdout and (tmp_path / "flag").exists()
    else:
        assert (said.returncode, said.stdout) == (0, "same bits\n"), said.stderr
