"""How fast LIBSVM text is parsed, against scikit-learn's load_svmlight_file: a ratio from one run, and the memory it takes.

Usage: bench_parse.py PARSE FOLDER
"""

import os
import subprocess
import sys
import time

import numpy as np
from sklearn.datasets import load_svmlight_file


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


def main():
    parse, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    print("| file | MB | scikit-learn | pasta, 1 thread | pasta, all threads | ratio, 1 thread | ratio, all | peak memory/table |")
    print("|---|---|---|---|---|---|---|---|")
    for make in (sparse, dense):
        path = os.path.join(folder, make.__name__ + ".svm")
        if not os.path.exists(path):
            make(path)
        ours = {}
        for threads in (1, 0):
            runs = [subprocess.run([parse, path, str(threads)], capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
            ours[threads] = min(float(run[0]) for run in runs)
        rows, columns, entries, peak = map(int, runs[0][1:])
        table = 8 * rows * columns if entries == rows * columns else 12 * entries + 8 * rows
        table += 8 * rows
        begun = time.perf_counter()
        X, _ = load_svmlight_file(path)
        theirs = time.perf_counter() - begun
        assert X.shape == (rows, columns) and X.nnz == entries, (X.shape, X.nnz, rows, columns, entries)
        size = os.path.getsize(path) / 1e6
        print(
            f"| {make.__name__} | {size:.0f} | {theirs:.2f} s | {ours[1]:.2f} s | {ours[0]:.2f} s "
            f"| {theirs / ours[1]:.1f} | {theirs / ours[0]:.1f} | {peak / table:.2f} |"
        )


main()
