"""Samples that the prototype of `auto` needed on the problems of the leaderboard, until it held a point that had passed its own check with 10, 1
and .1 % of the initial gradient.

    python3 -m venv env && env/bin/pip install numpy
    env/bin/python tests/peers/prototype.py target/release/pasta-lab PROTOTYPE.py > crates/pasta-lab/data/prototype.json

PROTOTYPE.py has the function aqn(problem, eps, rng, budget, track, values): the adaptive-sampling quasi-Newton method that `auto` grew out of. It is
not part of this repository; the figures are. The problems are the leaderboard's own, asked through `pasta-lab leaderboard --serve NAME`. Runs that do
not arrive within the budget have null.
"""
import importlib.util
import json
import math
import subprocess
import sys

import numpy as np

BUDGET, SEEDS, MARKS = 200_000, 10, (0.1, 0.01, 0.001)


class Problem:
    """A problem behind its pipe, in the form that the prototype asks for."""

    def __init__(self, program, name):
        self.pipe = subprocess.Popen([program, "leaderboard", "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        about = json.loads(self.pipe.stdout.readline())
        self.x0, self.rows, self.losses = np.array(about["start"]), about["rows"], about["losses"]
        self.d = len(self.x0)

    def ask(self, x, n, seed=None):
        if not np.isfinite(x).all():
            return None
        self.pipe.stdin.write(json.dumps({"x": list(map(float, x)), "n": int(n), "seed": seed}) + "\n")
        self.pipe.stdin.flush()
        return json.loads(self.pipe.stdout.readline())

    def batch(self, x, n, rng):
        whole = self.rows is not None and n >= self.rows
        told = self.ask(x, n, None if whole else int(rng.integers(2**63)))
        if told is None or any(g is None for g in told["gradient"]) or told["scatter"] is None or told["loss"] is None:
            return np.full(self.d, np.nan), math.nan, math.nan, n
        return np.array(told["gradient"]), told["scatter"], told["loss"], n

    def score(self, X):
        scores = [self.ask(x, 0) for x in np.atleast_2d(X)]
        return np.array([math.inf if s is None or s["error"] is None else s["error"] for s in scores])


class Track:
    """Notes when a held point first has each part of the initial gradient."""

    def __init__(self, problem):
        self.problem, self.first, self.marks = problem, problem.score(problem.x0)[0], [None] * len(MARKS)

    def __call__(self, evaluations, x):
        pass

    def end(self, evaluations, x):
        if all(mark is not None for mark in self.marks):
            return
        part = self.problem.score(x)[0] / self.first
        self.marks = [evaluations if mark is None and part <= least else mark for mark, least in zip(self.marks, MARKS)]


def main(program, prototype):
    spec = importlib.util.spec_from_file_location("prototype", prototype)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = json.loads(subprocess.run([program, "leaderboard", "--serve", "list"], capture_output=True, text=True, check=True).stdout)
    figures = {}
    for name in names:
        runs = []
        for seed in range(1, SEEDS + 1):
            problem = Problem(program, name)
            track = Track(problem)
            with np.errstate(all="ignore"):
                module.aqn(problem, 0.0, np.random.default_rng(seed), BUDGET, track=track, values=problem.losses)
            problem.pipe.stdin.close()
            problem.pipe.wait()
            runs.append(track.marks)
        figures[name] = runs
        print(name, runs, file=sys.stderr, flush=True)
    rows = [f"  {json.dumps(name)}: {json.dumps(runs, separators=(',', ':'))}" for name, runs in figures.items()]
    print('{"budget": %d, "runs": {\n%s\n}}' % (BUDGET, ",\n".join(rows)))


main(*sys.argv[1:])
