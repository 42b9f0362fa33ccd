"""Passes and time to a gradient of a millionth of that at the start, beside scikit-learn and cyanure, on one thread.

`cargo xtask fit-peers [NAME ..]` makes the environment and runs this file with the path of the program, a folder for tables and what the names of
tables shall begin with (all, if nothing is said). All minimise the same objective, mean loss + 1e-4/2 |w|^2 with a free intercept. A peer has no
such stop rule, so it is run with limits that grow (passes, or a finer tolerance) until the exact gradient of what it returns is small enough, and the
first run that is counts, with the time of that run alone.

What is timed: of a peer its `fit` of an array in memory, in a process that has loaded everything. Of ours what the program calls "to fit": from
the table in memory to the model with its exact certificate; and beside it the whole program, with its start, the reading of an NPY file, checks of
its values, scores and output. The fastest of five runs counts for all, by the clock on the wall: run it on an idle machine.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy.special import expit, softmax
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, Ridge

try:
    from cyanure.estimators import Classifier, Regression
except ImportError:
    Classifier = None

warnings.filterwarnings("ignore")
PROGRAM, FOLDER, NAMES = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
PENALTY, RELATIVE, PATIENCE = 1e-4, 1e-6, 10.0
RUNS = 5
LIMITS = [3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000]


def generated(bad):
    random = np.random.default_rng(7)
    rows, columns = 200_000, 20
    x = random.normal(size=(rows, columns))
    if bad:
        x = x @ np.diag(np.logspace(0, -3, columns)) @ random.normal(size=(columns, columns)) + 3
    z = x @ random.normal(size=columns)
    z = (z - z.mean()) / z.std()
    return x, z + 0.5 * random.normal(size=rows), (random.random(rows) < expit(2 * z)).astype(float)


def tables():
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    yield "diabetes", "least-squares", x, y
    x, y = datasets.load_breast_cancer(return_X_y=True)
    yield "breast cancer", "logistic", x, y.astype(float)
    x, y = datasets.load_digits(return_X_y=True)
    yield "digits", "multinomial", x, y.astype(float)
    for bad in (False, True):
        x, y, classes = generated(bad)
        name = "generated, badly conditioned" if bad else "generated, well conditioned"
        yield name, "least-squares", x, y
        yield name, "logistic", x, classes


def gradient(loss, x, y, weights, intercept):
    """The norm of the exact gradient: weights in rows of classes, or one row."""
    z = x @ weights.T + intercept
    if loss == "least-squares":
        slopes = z - y[:, None]
    elif loss == "logistic":
        slopes = expit(z) - y[:, None]
    else:
        slopes = softmax(z, axis=1)
        slopes[np.arange(len(y)), y.astype(int)] -= 1
    of_weights = slopes.T @ x / len(y) + PENALTY * weights
    return np.sqrt((of_weights**2).sum() + (slopes.mean(axis=0) ** 2).sum())


@contextlib.contextmanager
def silence():
    kept = [os.dup(1), os.dup(2)]
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1), os.dup2(sink, 2)
        yield
    finally:
        for number, copy in zip((1, 2), kept):
            os.dup2(copy, number), os.close(copy)
        os.close(sink)


def peers(loss, rows):
    """Name, whether limits are passes, and what makes a model with a limit and a tolerance."""
    c = 1 / (PENALTY * rows)
    if loss == "least-squares":
        alpha = PENALTY * rows
        yield "cholesky", False, lambda limit, tol: Ridge(alpha=alpha, solver="cholesky")
        yield "lsqr", False, lambda limit, tol: Ridge(alpha=alpha, solver="lsqr", tol=tol, max_iter=5000)
        yield "saga", True, lambda limit, tol: Ridge(alpha=alpha, solver="saga", tol=0, max_iter=limit)
        if Classifier:
            yield "cyanure", True, lambda limit, tol: Regression(
                penalty="l2", lambda_1=PENALTY, tol=1e-16, max_iter=limit, verbose=False, n_threads=1
            )
        return
    yield "lbfgs", True, lambda limit, tol: LogisticRegression(C=c, solver="lbfgs", tol=0, max_iter=limit)
    yield "newton-cholesky", True, lambda limit, tol: LogisticRegression(C=c, solver="newton-cholesky", tol=1e-14, max_iter=limit)
    yield "saga", True, lambda limit, tol: LogisticRegression(C=c, solver="saga", tol=0, max_iter=limit)
    if Classifier:
        kind = "multiclass-logistic" if loss == "multinomial" else "logistic"
        yield "cyanure", True, lambda limit, tol: Classifier(
            loss=kind, penalty="l2", lambda_1=PENALTY, tol=1e-16, max_iter=limit, verbose=False, n_threads=1
        )


def shaped(model, loss):
    weights = np.asarray(model.coef_, dtype=float)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=float).squeeze())
    if loss == "multinomial":
        if weights.shape[0] != len(intercept):
            weights = weights.T
        return weights, intercept
    return weights.reshape(1, -1), intercept.reshape(-1)[:1]


def peer(loss, x, y, make, target, by_limit):
    """Passes and seconds to the target; `None` where it does not come there."""
    begun = time.perf_counter()
    tries = LIMITS if by_limit else [10.0**-k for k in range(3, 16)]
    for step in tries:
        best = None
        for _ in range(RUNS):
            try:
                with silence():
                    model = make(step, 0) if by_limit else make(0, step)
                    start = time.perf_counter()
                    model.fit(x, y)
                    seconds = time.perf_counter() - start
            except Exception as error:
                print(f"a peer failed: {error}", file=sys.stderr)
                return None
            best = seconds if best is None else min(best, seconds)
            if time.perf_counter() - begun > PATIENCE:
                break
        weights, intercept = shaped(model, loss)
        if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
            continue
        with np.errstate(all="ignore"):
            reached = gradient(loss, x, y, weights, intercept)
        if reached <= target:
            passes = np.max(np.atleast_1d(getattr(model, "n_iter_", step if by_limit else 1) or 1))
            return int(min(passes, step) if by_limit else passes), best
        if time.perf_counter() - begun > PATIENCE:
            return None
    return None


def ours(loss, target, method):
    """Passes, seconds to fit, seconds of the program; the method that ran."""
    command = [PROGRAM, "fit", str(FOLDER / "x.npy"), "--labels", str(FOLDER / "y.npy"), "--loss", loss, "--penalty", str(PENALTY)]
    command += ["--raw", "--threads", "1", "--target", repr(float(target)), "--json"] + (["--method", method] if method else [])
    fit, whole, result = None, None, None
    for _ in range(RUNS):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            return None
        to_fit = float(re.search(r"([\d.]+) s to fit", done.stderr)[1])
        fit, whole = min(fit or to_fit, to_fit), min(whole or seconds, seconds)
        result = json.loads(done.stdout)
    return round(result["passes"]), fit, whole, result["method"]


def shown(result):
    return "–" if result is None else f"{result[0]}, {1e3 * result[1]:.1f} ms"


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    starts = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([PROGRAM, "--version"], capture_output=True)
        starts.append(time.perf_counter() - start)
    print(f"starting our program takes {1e3 * min(starts):.1f} ms", file=sys.stderr)
    peers_shown = ["lbfgs", "newton-cholesky", "cholesky", "lsqr", "saga", "cyanure"]
    print(f"| table | loss | columns | default | `auto` | {' | '.join(peers_shown)} | default/best | program/best | `auto`/best | default/saga |")
    print("|" + "---|" * (9 + len(peers_shown)))
    for name, loss, x, y in tables():
        if NAMES and not any(name.startswith(wanted) for wanted in NAMES):
            continue
        for raw in (False, True):
            if not raw:
                kept = x.std(axis=0) > 0
                x_used = (x - x.mean(axis=0)) / np.where(kept, x.std(axis=0), 1)
            else:
                x_used = x
            np.save(FOLDER / "x.npy", np.ascontiguousarray(x_used))
            np.save(FOLDER / "y.npy", y)
            outputs = int(y.max()) + 1 if loss == "multinomial" else 1
            target = RELATIVE * gradient(loss, x_used, y, np.zeros((outputs, x.shape[1])), np.zeros(outputs))
            usual, auto = (ours(loss, target, method) for method in (None, "auto"))
            found = {who: peer(loss, x_used, y, make, target, by_limit) for who, by_limit, make in peers(loss, len(y))}
            best = min((result[1] for result in found.values() if result), default=None)
            over = lambda mine, theirs: "–" if not (mine and theirs) else f"{mine / theirs:.2f}"
            saga = found.get("saga")
            cells = [name, loss, "raw" if raw else "standardised", f"{shown(usual)} ({usual[3]})" if usual else "–", shown(auto)]
            cells += [shown(found.get(who)) for who in peers_shown]
            cells += [over(usual and usual[1], best), over(usual and usual[2], best), over(auto and auto[1], best)]
            cells += [over(usual and usual[1], saga and saga[1])]
            print("| " + " | ".join(cells) + " |", flush=True)


main()
