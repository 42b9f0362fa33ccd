"""An oracle of Python as a simulator of the program, by a script of two lines."""

import json
import subprocess
import sys

import numpy as np
import pasta_opt
import pytest

MINE = '''
import numpy as np, pasta_opt

TRUTH = np.array([1.0, -2.0, 3.0])

def many(x, rng, n):
    a = rng.normal(size=(n, 3))
    residual = a @ x - a @ TRUTH - rng.normal(size=n)
    return residual**2 / 2, residual @ a

def one(x, rng):
    a = rng.normal(size=3)
    return ((a @ x - a @ TRUTH - rng.normal()) * a).astype(np.float32).tolist()

class Whole(pasta_opt.Problem):
    name = "my own problem"
    def gradient(self, x, rng, n):
        print("printed", end="")
        return many(x, rng, n)[1]
    def loss(self, x, rng, n):
        return many(x, rng, n)[0]

whole = Whole()

def mean(x, rng, n):
    return many(x, rng, n)[1] / n

def raising(x, rng, n):
    if x[0] != 0:
        raise ZeroDivisionError("on purpose")
    return many(x, rng, n)

def at_once(x, rng):
    raise LookupError("no such file")
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    for name in ("many", "one", "whole", "mean", "raising", "at_once"):
        (tmp_path / f"{name}.py").write_text(f"import mine, pasta_opt\npasta_opt.serve(mine.{name})\n")
    return tmp_path


def problem(name, workers, block=256, more=""):
    words = json.dumps([sys.executable, f"{name}.py"])
    return f"{more}\n[problem]\ncommand = {words}\nstart = [0.0, 0.0, 0.0]\nworkers = {workers}\nblock = {block}\n[recipe]\nname = \"auto\"\n"


def program(folder, *arguments):
    command = [sys.executable, "-m", "pasta_opt", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", ["many", "one", "whole"])
def test_the_function_of_minimize_runs_in_the_program_with_the_same_bits_on_any_number_of_workers(name, folder):
    points = []
    for workers in (1, 3):
        (folder / "p.toml").write_text(problem(name, workers, more="budget = 6000\nseed = 5"))
        said = program(folder, "solve", "p.toml", "--json")
        assert said.returncode in (0, 5), said.stderr
        points.append(json.loads(said.stdout)["point"])
    assert points[0] == points[1]
    # The error of 6,000 samples is about sqrt(3/6000) = 0.02 with the best use of each; auto uses them worse.
    assert np.linalg.norm(np.array(points[0]) - [1.0, -2.0, 3.0]) < 0.3


@pytest.mark.parametrize(("name", "losses"), [("many", True), ("one", False), ("whole", True)])
def test_the_program_finds_nothing_wrong_with_it(name, losses, folder):
    (folder / "p.toml").write_text(problem(name, 2))
    said = program(folder, "check", "p.toml", "--json")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["sentences"] == []
    assert found["hello"]["losses"] == losses and found["hello"]["additive"] == (name == "one")
    assert ("my own problem" if name == "whole" else f"mine.{name}") in found["hello"]["name"]
    # What is printed is no reply.
    assert ("printed" in said.stderr) == (name == "whole")


def test_slips_and_exceptions_are_told_in_sentences(folder):
    (folder / "p.toml").write_text(problem("mean", 1, more="budget = 6000"))
    said = program(folder, "solve", "p.toml")
    assert said.returncode == 2 and "it is their mean" in said.stderr, said.stderr
    (folder / "p.toml").write_text(problem("raising", 1, more="budget = 6000"))
    said = program(folder, "solve", "p.toml")
    assert said.returncode == 1 and "ZeroDivisionError: on purpose" in said.stderr and "raising" in said.stderr, said.stderr
    (folder / "p.toml").write_text(problem("at_once", 1, more="budget = 6000"))
    said = program(folder, "solve", "p.toml")
    assert said.returncode != 0 and "one sample at 0 was to show whether it gives losses" in said.stderr and "LookupError: no such file" in said.stderr


def test_it_answers_until_its_input_ends_and_refuses_what_it_cannot_serve(folder):
    hello = b'{"pasta": 1, "dimension": 3}\n'
    run = subprocess.run([sys.executable, "one.py"], cwd=folder, input=hello, capture_output=True, check=True)
    assert json.loads(run.stdout)["framing"] == "binary"
    assert subprocess.run([sys.executable, "one.py"], cwd=folder, input=b"", capture_output=True, check=True).stdout == b""
    hello = b'{"pasta": 2, "dimension": 3}\n'
    run = subprocess.run([sys.executable, "one.py"], cwd=folder, input=hello, capture_output=True, check=True)
    assert "speaks version 1" in json.loads(run.stdout)["error"]
    for oracle in (pasta_opt.HardInstance(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001), pasta_opt.Pool(len, 1)):
        with pytest.raises(TypeError, match="serve takes a function, an Oracle or a Problem of Python"):
            pasta_opt.serve(oracle)
    oracle.close()
