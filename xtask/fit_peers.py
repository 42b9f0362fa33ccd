"""Passes and time to a gradient of a millionth of that at the start, beside scikit-learn, cyanure and SciPy, on one thread.

`cargo xtask fit-peers [NAME ..]` makes the environment and runs this file with the path of the program, a folder for tables and what the names of
tables shall begin with (all, if nothing is said). All minimise the same objective, mean loss + 1e-4/2 |w|^2 with a free intercept. A peer has no
such stop rule, so it is first run with limits that grow (passes, or a finer tolerance) until the exact gradient of what it returns is small enough; that
limit is then its setting. SciPy's L-BFGS, for losses that nobody else has, stops by itself at the gradient.

Then all are timed in turns, ours and every peer once in each of seven rounds, and the fastest run of each counts, by the clock on the wall: run it on
an idle machine. Who takes long takes part in fewer rounds. Of a peer its `fit` of an array in memory is timed, in a process that has loaded everything; of
ours what the program calls "to fit", from the table in memory to the model with its exact certificate, and beside it the whole program, with its
start, the reading of an NPY file, checks of its values, scores and output.
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
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

try:
    from cyanure.estimators import Classifier, Regression
except ImportError:
    Classifier = None

warnings.filterwarnings("ignore")
PROGRAM, FOLDER, NAMES = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
PENALTY, RELATIVE, DELTA = 1e-4, 1e-6, 1.345
# Seconds of the processor that a peer has to find the limit with which it arrives; seconds of a contestant's rounds.
PATIENCE, ROUNDS_TIME = 20.0, 3.0
ROUNDS = 7
LIMITS = [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 65, 80, 100, 130, 160, 200, 250, 300, 400, 500, 800, 1200, 2000]
# At most so many times the best peer.
GOAL = 1.5


def generated(bad):
    random = np.random.default_rng(7)
    rows, columns = 200_000, 20
    x = random.normal(size=(rows, columns))
    if bad:
        x = x @ np.diag(np.logspace(0, -3, columns)) @ random.normal(size=(columns, columns)) + 3
    z = x @ random.normal(size=columns)
    z = (z - z.mean()) / z.std()
    numbers = z + 0.5 * random.normal(size=rows)
    classes = (random.random(rows) < expit(2 * z)).astype(float)
    outliers = numbers + (random.random(rows) < 0.05) * random.normal(scale=20, size=rows)
    return x, numbers, classes, outliers


def tables():
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    yield "diabetes", "least-squares", x, y
    yield "diabetes", "huber", x, y
    x, y = datasets.load_breast_cancer(return_X_y=True)
    yield "breast cancer", "logistic", x, y.astype(float)
    yield "breast cancer", "squared-hinge", x, y.astype(float)
    x, y = datasets.load_digits(return_X_y=True)
    yield "digits", "multinomial", x, y.astype(float)
    for bad in (False, True):
        x, y, classes, outliers = generated(bad)
        name = "generated, badly conditioned" if bad else "generated, well conditioned"
        yield name, "least-squares", x, y
        yield name, "logistic", x, classes
        yield name, "huber", x, outliers
        yield name, "squared-hinge", x, classes


def differentiate(loss, z, y):
    """The mean loss where SciPy needs it, and the slopes of all rows, in their scores."""
    if loss == "least-squares":
        return None, z - y[:, None]
    if loss == "logistic":
        return None, expit(z) - y[:, None]
    if loss == "huber":
        error = z - y[:, None]
        slopes = np.clip(error, -DELTA, DELTA)
        return np.mean(slopes * (error - 0.5 * slopes)), slopes
    if loss == "squared-hinge":
        sign = 2 * y[:, None] - 1
        short = np.maximum(0, 1 - sign * z)
        return 0.5 * np.mean(short**2), -sign * short
    slopes = softmax(z, axis=1)
    slopes[np.arange(len(y)), y.astype(int)] -= 1
    return None, slopes


def gradient(loss, x, y, weights, intercept):
    """The norm of the exact gradient: weights in rows of classes, or one row."""
    slopes = differentiate(loss, x @ weights.T + intercept, y)[1]
    of_weights = slopes.T @ x / len(y) + PENALTY * weights
    return np.sqrt((of_weights**2).sum() + (slopes.mean(axis=0) ** 2).sum())


class Scipy:
    """SciPy's L-BFGS on a loss of one score, until the gradient is small enough."""

    def __init__(self, loss, target):
        self.loss, self.target = loss, target

    def fit(self, x, y):
        self.n_iter_, norm = 0, np.inf

        def objective(v):
            nonlocal norm
            self.n_iter_ += 1
            value, slopes = differentiate(self.loss, x @ v[:-1, None] + v[-1], y)
            whole = np.append(slopes[:, 0] @ x / len(y) + PENALTY * v[:-1], slopes.mean())
            norm = np.linalg.norm(whole)
            return value + 0.5 * PENALTY * v[:-1] @ v[:-1], whole

        def callback(v):
            if norm <= self.target:
                raise StopIteration

        options = dict(maxiter=5000, maxfun=5000, ftol=0, gtol=0)
        found = minimize(objective, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", callback=callback, options=options)
        self.coef_, self.intercept_ = found.x[:-1], found.x[-1]


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


PEERS = ["lbfgs", "newton-cholesky", "cholesky", "lsqr", "saga", "cyanure", "liblinear", "scipy"]


def peers(loss, rows, target):
    """Name, the limits that it is tried with, and what makes a model with one of them."""
    c = 1 / (PENALTY * rows)
    tolerances = [10.0**-k for k in range(3, 16)]
    if loss == "least-squares":
        alpha = PENALTY * rows
        yield "cholesky", [0], lambda _: Ridge(alpha=alpha, solver="cholesky")
        yield "lsqr", tolerances, lambda tol: Ridge(alpha=alpha, solver="lsqr", tol=tol, max_iter=5000)
        yield "saga", LIMITS, lambda limit: Ridge(alpha=alpha, solver="saga", tol=0, max_iter=limit)
    elif loss in ("logistic", "multinomial"):
        yield "lbfgs", LIMITS, lambda limit: LogisticRegression(C=c, solver="lbfgs", tol=0, max_iter=limit)
        yield "newton-cholesky", LIMITS, lambda limit: LogisticRegression(C=c, solver="newton-cholesky", tol=1e-14, max_iter=limit)
        yield "saga", LIMITS, lambda limit: LogisticRegression(C=c, solver="saga", tol=0, max_iter=limit)
    else:
        yield "scipy", [0], lambda _: Scipy(loss, target)
    if loss == "squared-hinge":
        # Its intercept has a penalty, which a large scale makes small; the exact gradient says whether small enough.
        yield "liblinear", tolerances, lambda tol: LinearSVC(C=c / 2, dual=False, tol=tol, intercept_scaling=1e3, max_iter=5000)
    kinds = {"logistic": "logistic", "multinomial": "multiclass-logistic", "squared-hinge": "sqhinge", "least-squares": None}
    if Classifier and loss in kinds:
        settings = dict(penalty="l2", lambda_1=PENALTY, tol=1e-16, verbose=False, n_threads=1)
        kind = kinds[loss]
        yield "cyanure", LIMITS, lambda limit: (
            Classifier(loss=kind, max_iter=limit, **settings) if kind else Regression(max_iter=limit, **settings)
        )


def shaped(model, loss):
    weights = np.asarray(model.coef_, dtype=float)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=float).squeeze())
    if loss == "multinomial":
        if weights.shape[0] != len(intercept):
            weights = weights.T
        return weights, intercept
    return weights.reshape(1, -1), intercept.reshape(-1)[:1]


class Peer:
    def __init__(self, loss, x, y, limits, make):
        self.loss, self.x, self.y, self.limits, self.make = loss, x, y, limits, make

    def run(self, limit):
        """Seconds and the model."""
        with silence():
            model = self.make(limit)
            start = time.perf_counter()
            model.fit(self.x, self.y)
            return time.perf_counter() - start, model

    def arrives(self, target):
        """Looks for the first limit with which it comes to the target."""
        begun = time.process_time()
        for self.limit in self.limits:
            try:
                seconds, model = self.run(self.limit)
            except Exception as error:
                print(f"a peer failed: {error}", file=sys.stderr)
                return False
            weights, intercept = shaped(model, self.loss)
            with np.errstate(all="ignore"):
                if gradient(self.loss, self.x, self.y, weights, intercept) <= target:
                    passes = np.max(np.atleast_1d(getattr(model, "n_iter_", None) or self.limit or 1))
                    self.passes = int(min(passes, self.limit) if self.limits is LIMITS else passes)
                    return True
            if time.process_time() - begun > PATIENCE:
                return False
        return False

    def once(self):
        return {"fit": self.run(self.limit)[0]}


class Ours:
    def __init__(self, loss, target, method):
        self.command = [PROGRAM, "fit", str(FOLDER / "x.npy"), "--labels", str(FOLDER / "y.npy"), "--loss", loss, "--penalty", str(PENALTY)]
        self.command += ["--raw", "--threads", "1", "--target", repr(float(target)), "--json"] + (["--method", method] if method else [])
        if loss == "huber":
            self.command += ["--delta", str(DELTA)]

    def arrives(self, _):
        try:
            done = subprocess.run(self.command, capture_output=True, text=True, timeout=6 * PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        if done.returncode == 0:
            answer = json.loads(done.stdout)
            self.passes, self.method = round(answer["passes"]), answer["method"]
        elif done.returncode != 4:
            sys.exit(f"{' '.join(self.command)}: {done.stderr}")
        return done.returncode == 0

    def once(self):
        start = time.perf_counter()
        done = subprocess.run(self.command, capture_output=True, text=True, check=True)
        whole = time.perf_counter() - start
        return {"fit": float(re.search(r"([\d.]+) s to fit", done.stderr)[1]), "program": whole}


def in_turns(contestants):
    """The fastest of several rounds, in each of which everybody has a turn."""
    best, spent = {who: {} for who in contestants}, dict.fromkeys(contestants, 0.0)
    for number in range(ROUNDS):
        for who, contestant in contestants.items():
            # Two rounds for the slowest.
            if number >= 2 and spent[who] > ROUNDS_TIME:
                continue
            start = time.perf_counter()
            for what, seconds in contestant.once().items():
                # What is printed has a tenth of a millisecond.
                best[who][what] = max(min(best[who].get(what, seconds), seconds), 5e-5)
            spent[who] += time.perf_counter() - start
    return best


def compare(loss, x, y):
    """Who arrives, passes and the fastest times."""
    np.save(FOLDER / "x.npy", np.ascontiguousarray(x))
    np.save(FOLDER / "y.npy", y)
    outputs = int(y.max()) + 1 if loss == "multinomial" else 1
    target = RELATIVE * gradient(loss, x, y, np.zeros((outputs, x.shape[1])), np.zeros(outputs))
    everybody = {"default": Ours(loss, target, None), "auto": Ours(loss, target, "auto")}
    everybody |= {who: Peer(loss, x, y, limits, make) for who, limits, make in peers(loss, len(y), target)}
    arrived = {who: contestant for who, contestant in everybody.items() if contestant.arrives(target)}
    return everybody, arrived, in_turns(arrived)


def row(name, loss, columns, everybody, arrived, best, verdicts):
    def shown(who):
        if who not in everybody:
            return ""
        return f"{arrived[who].passes}, {1e3 * best[who]['fit']:.1f}" if who in arrived else "–"

    def over(who, what, than):
        if who not in arrived or than is None:
            return "–"
        return f"{best[who][what] / than:.2f}"

    there = {who: best[who]["fit"] for who in arrived if who in PEERS}
    first = min(there, key=there.get, default=None)
    least = there.get(first)
    saga = there.get("saga")
    where = f"{name}, {loss}, {columns}"
    ratios = [over("default", "fit", least), over("default", "program", least), over("auto", "fit", least), over("default", "fit", saga)]
    for goal, ratio, most in [("fit/best", ratios[0], GOAL), ("program/best", ratios[1], GOAL), ("auto/best", ratios[2], GOAL), ("fit/saga", ratios[3], 1.0)]:
        missed = (ratio == "–" and goal != "fit/saga") or (ratio != "–" and float(ratio) > most)
        verdicts.setdefault((goal, most), []).append((missed, f"{where} ({ratio})"))
    method = f" ({arrived['default'].method})" if "default" in arrived else ""
    cells = [name, loss, columns, shown("default") + method, shown("auto")] + [shown(who) for who in PEERS] + [first or "–"] + ratios
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    starts = []
    for _ in range(20):
        start = time.perf_counter()
        subprocess.run([PROGRAM, "--version"], capture_output=True)
        starts.append(time.perf_counter() - start)
    print(f"Passes and milliseconds; – where it did not arrive in {PATIENCE:.0f} s of trying. Starting our program takes {1e3 * min(starts):.1f} ms.\n")
    print(f"| table | loss | columns | default | `auto` | {' | '.join(PEERS)} | best peer | default/best | program/best | `auto`/best | default/saga |")
    print("|" + "---|" * (10 + len(PEERS)), flush=True)
    verdicts = {}
    for name, loss, x, y in tables():
        if NAMES and not any(name.startswith(wanted) for wanted in NAMES):
            continue
        for columns in ("standardised", "raw"):
            deviation = x.std(axis=0)
            used = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1) if columns == "standardised" else x
            row(name, loss, columns, *compare(loss, used, y), verdicts)
    print()
    for (goal, most), rows in verdicts.items():
        missed = [where for is_missed, where in rows if is_missed]
        print(f"{goal} at most {most}: {len(rows) - len(missed)} of {len(rows)}" + (f"; missed on {'; '.join(missed)}" if missed else ""))


main()
