"""Lasso, elastic net, non-negative and l1 logistic fits beside scikit-learn, celer and skglm: objectives and times.

Run by `cargo xtask l1-peers`. Every program minimises the same function of the same standardised columns on one thread. A peer
is timed at the loosest of its tolerances with which its objective is within 1e-8 of the lowest that anybody found, relative to
the objective without columns; so its tolerance is chosen with knowledge of the answer. Peers are timed on arrays in memory in a
process that has loaded everything; ours is what the program says it took "to fit", the certificate included.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from sklearn import datasets, linear_model

warnings.filterwarnings("ignore")
ROUNDS = 5
CLOSE = 1e-8
TOLERANCES = [1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14]
PATIENCE = 30.0


def standardised(columns):
    columns = columns[:, columns.std(axis=0) > 0]
    return np.asfortranarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


def tables():
    """Name, columns, numbers, and classes or None."""
    X, y = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", standardised(X), y, None
    products = [X[:, i] * X[:, j] for i in range(10) for j in range(i, 10)]
    yield "diabetes, products", standardised(np.column_stack([X, *products])), y, None
    X, _ = datasets.load_wine(return_X_y=True)
    yield "wine, alcohol", standardised(X[:, 1:]), X[:, 0], None
    X, y = datasets.load_breast_cancer(return_X_y=True)
    yield "breast cancer", standardised(X), None, y
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits", standardised(X), y.astype(float), (y >= 5).astype(int)
    for name, rows, columns, correlation in [
        ("100,000 x 20", 100_000, 20, 0.0),
        ("20,000 x 100, correlated", 20_000, 100, 0.9),
        ("200 x 400, correlated", 200, 400, 0.5),
    ]:
        random = np.random.default_rng(7)
        shared = random.standard_normal((rows, 1))
        X = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * random.standard_normal((rows, columns))
        X = standardised(X)
        weights = np.where(np.arange(columns) % 5 == 0, random.standard_normal(columns), 0.0)
        scores = X @ weights
        y = scores + 2 * random.standard_normal(rows)
        classes = (scores / scores.std() * 2 + random.logistic(size=rows) > 0).astype(int)
        yield name, X, y, classes


class Problem:
    """What is minimised: a mean loss, l1 and ridge."""

    def __init__(self, X, y, loss, l1, ridge, positive=False):
        self.X, self.y, self.loss, self.l1, self.ridge, self.positive = X, y, loss, l1, ridge, positive

    def objective(self, weights, intercept):
        if self.positive and weights.min() < 0:
            return np.inf
        scores = self.X @ weights + intercept
        if self.loss == "least-squares":
            losses = 0.5 * (scores - self.y) ** 2
        else:
            losses = np.logaddexp(0, -(2 * self.y - 1) * scores)
        return losses.mean() + self.l1 * np.abs(weights).sum() + 0.5 * self.ridge * weights @ weights

    def constant(self):
        mean = self.y.mean()
        best = mean if self.loss == "least-squares" else np.log(mean / (1 - mean))
        return self.objective(np.zeros(self.X.shape[1]), best)


def peers(problem):
    """Names and constructors of estimators, by tolerance."""
    alpha, rows = problem.l1, len(problem.y)
    if problem.positive:
        return {"LinearRegression(positive)": lambda tol: linear_model.LinearRegression(positive=True, tol=tol)}
    many = 1_000_000
    if problem.loss == "least-squares" and problem.ridge == 0:
        found = {"Lasso": lambda tol: linear_model.Lasso(alpha=alpha, tol=tol, max_iter=many)}
        celer = imported("celer")
        if celer:
            found["celer"] = lambda tol: celer.Lasso(alpha=alpha, tol=tol, max_iter=1000)
        return found
    if problem.loss == "least-squares":
        total = alpha + problem.ridge
        share = alpha / total
        found = {"ElasticNet": lambda tol: linear_model.ElasticNet(alpha=total, l1_ratio=share, tol=tol, max_iter=many)}
        celer = imported("celer")
        if celer:
            found["celer"] = lambda tol: celer.ElasticNet(alpha=total, l1_ratio=share, tol=tol, max_iter=1000)
        return found
    saga = dict(C=1 / (rows * alpha), solver="saga", max_iter=20_000)
    found = {"saga": lambda tol: l1_logistic(tol=tol, **saga)}
    skglm = imported("skglm")
    if skglm:
        found["skglm"] = lambda tol: skglm.SparseLogisticRegression(alpha=alpha, tol=tol, max_iter=1000)
    return found


def l1_logistic(**settings):
    """The penalty has had two names."""
    try:
        return linear_model.LogisticRegression(l1_ratio=1, **settings)
    except TypeError:
        return linear_model.LogisticRegression(penalty="l1", **settings)


def imported(name):
    try:
        return __import__(name)
    except ImportError:
        return None


def timed(make, problem):
    estimator = make()
    begun = time.perf_counter()
    try:
        estimator.fit(problem.X, problem.y)
    except Exception as error:  # a peer that refuses a table is left out of its row
        print(f"  {type(estimator).__name__}: {error}", file=sys.stderr)
        return np.inf, np.inf
    seconds = time.perf_counter() - begun
    weights, intercept = np.ravel(estimator.coef_), float(np.ravel(estimator.intercept_)[0])
    return seconds, problem.objective(weights, intercept)


class Ours:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def write(self, problem):
        np.save(f"{self.folder}/X.npy", np.ascontiguousarray(problem.X))
        np.save(f"{self.folder}/y.npy", problem.y.astype(float))

    def fit(self, problem):
        words = ["fit", f"{self.folder}/X.npy", "--labels", f"{self.folder}/y.npy", "--loss", problem.loss]
        words += ["--threads", "1", "--std-errors", "none", "-o", f"{self.folder}/model.json"]
        if problem.positive:
            words.append("--non-negative")
        elif problem.ridge > 0:
            total = problem.l1 + problem.ridge
            words += ["--penalty", repr(float(total)), "--elastic-net", repr(float(problem.l1 / total))]
        else:
            words += ["--penalty-l1", repr(float(problem.l1))]
        done = subprocess.run([self.program, *words], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"  pasta: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return np.inf, np.inf
        model = json.load(open(f"{self.folder}/model.json"))
        named = dict(model["weights"]) if isinstance(model["weights"], dict) else None
        weights = np.array(list(named.values()) if named else np.ravel(model["weights"]), float)
        intercept = float(np.ravel(model["intercept"])[0])
        seconds = float(re.search(r"and ([0-9.]+) s to fit", done.stderr).group(1))
        return seconds, problem.objective(weights, intercept)


def problems():
    for table, X, y, classes in tables():
        if y is not None:
            most = np.abs(X.T @ (y - y.mean())).max() / len(y)
            for share in (10, 100):
                yield table, f"lasso, max/{share}", Problem(X, y, "least-squares", most / share, 0.0)
            yield table, "elastic net, max/20", Problem(X, y, "least-squares", most / 20, most / 20)
            if X.shape[0] > X.shape[1]:
                yield table, "non-negative", Problem(X, y, "least-squares", 0.0, 0.0, positive=True)
        if classes is not None:
            most = np.abs(X.T @ (classes - classes.mean())).max() / len(classes)
            for share in (10, 100):
                yield table, f"l1 logistic, max/{share}", Problem(X, classes, "logistic", most / share, 0.0)


def main(program):
    print("| table | fit | ours, ms | excess | peer | ms | excess | ours/peer |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(program, folder)
        for table, what, problem in problems():
            ours.write(problem)
            makers, found = peers(problem), {}
            _, own = ours.fit(problem)
            best = own
            for name, make in makers.items():
                found[name], begun = [], time.perf_counter()
                timed(lambda: make(1e-3), problem)  # compilers run once
                for tolerance in TOLERANCES:
                    found[name].append((tolerance, timed(lambda: make(tolerance), problem)[1]))
                    best = min(best, found[name][-1][1])
                    if time.perf_counter() - begun > PATIENCE:
                        break
            unit = problem.constant()
            chosen = {}
            for name, tried in found.items():
                enough = [tolerance for tolerance, value in tried if value - best <= CLOSE * unit]
                chosen[name] = enough[0] if enough else None
            times = {name: [] for name in ["ours", *chosen]}
            for _ in range(ROUNDS):
                times["ours"].append(ours.fit(problem)[0])
                for name, tolerance in chosen.items():
                    if tolerance is not None:
                        times[name].append(timed(lambda: makers[name](tolerance), problem)[0])
            mine = min(times["ours"])
            for name, tolerance in chosen.items():
                head = f"| {table} | {what} | {1000 * mine:.1f} | {(own - best) / unit:.0e} | {name} |"
                if tolerance is None:
                    closest = min(value for _, value in found[name])
                    print(f"{head} - | {(closest - best) / unit:.0e} | - |", flush=True)
                    continue
                value = dict(found[name])[tolerance]
                theirs = min(times[name])
                print(f"{head} {1000 * theirs:.1f} | {(value - best) / unit:.0e} | {mine / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
