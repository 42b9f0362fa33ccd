"""How fast text is parsed, against scikit-learn's load_svmlight_file and pandas.read_csv: ratios from one run, and the memory it takes.

Usage: bench_parse.py PARSE FOLDER
"""

import os
import subprocess
import sys
import time

import numpy as np
import pandas
from sklearn.datasets import load_svmlight_file

RUNS = 5


def sparse(path, rows=100_000, columns=50_000, full=75):
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for _ in range(rows):
            indices = np.unique(rng.integers(1, columns + 1, full))
            values = rng.random(len(indices))
            pairs = " ".join(f"{i}:{v:.6g}" for i, v in zip(indices, values))
            file.write(f"{1 if rng.random() < 0.5 else -1} {pairs}\n")


def dense(path, rows=100_000, columns=50):
    rng = np.random.default_rng(1)
    with open(path, "w") as file:
        for row in rng.standard_normal((rows, columns)):
            file.write("1 " + " ".join(f"{i + 1}:{v!r}" for i, v in enumerate(row.tolist())) + "\n")


def comma(path, form, rows=100_000, columns=50):
    rng = np.random.default_rng(2)
    with open(path, "w") as file:
        file.write(",".join(f"x{i}" for i in range(columns)) + ",y\n")
        for row in rng.standard_normal((rows, columns + 1)):
            file.write(",".join(form(v) for v in row.tolist()) + "\n")


def short(path):
    comma(path, lambda v: f"{v:.5g}")


def long(path):
    comma(path, repr)


def timed(work):
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def table(path, read, parse):
    """Ours on one thread, on all, and theirs, in turns: the best of each."""
    best = {1: np.inf, 0: np.inf, "theirs": np.inf}
    for _ in range(RUNS):
        for threads in (1, 0):
            run = subprocess.run([parse, path, str(threads)], capture_output=True, text=True, check=True).stdout.split()
            best[threads] = min(best[threads], float(run[0]))
        seconds, found = timed(lambda: read(path))
        best["theirs"] = min(best["theirs"], seconds)
    rows, columns, entries, peak = map(int, run[1:])
    size = 8 * rows * columns if entries == rows * columns else 12 * entries + 8 * rows
    return best, found, (rows, columns, entries), peak / (size + 8 * rows)


def main():
    parse, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    print("| file | MB | beside | its time | pasta, 1 thread | pasta, all threads | ratio, 1 thread | ratio, all | peak memory/table |")
    print("|---|---|---|---|---|---|---|---|---|")
    for make, ending in ((sparse, "svm"), (dense, "svm"), (short, "csv"), (long, "csv")):
        path = os.path.join(folder, f"{make.__name__}.{ending}")
        if not os.path.exists(path):
            make(path)
        pairs = ending == "svm"
        best, found, shape, memory = table(path, load_svmlight_file if pairs else pandas.read_csv, parse)
        if pairs:
            found = found[0]
            assert (*found.shape, found.nnz) == shape, (found.shape, found.nnz, shape)
        else:
            # The last column is the label.
            assert (len(found), len(found.columns) - 1) == shape[:2], (found.shape, shape)
        theirs = best["theirs"]
        print(
            f"| {make.__name__}.{ending} | {os.path.getsize(path) / 1e6:.0f} | {'load_svmlight_file' if pairs else 'pandas.read_csv'} | {theirs:.2f} s "
            f"| {best[1]:.2f} s | {best[0]:.2f} s | {theirs / best[1]:.1f} | {theirs / best[0]:.1f} | {memory:.2f} |",
            flush=True,
        )


main()
