"""Ratios of speed to NumPy, scikit-learn, JAX and cyanure, on one thread.

`cargo xtask bench-peers` makes the environment and runs this file with the path of the library's benchmark program. Both sides of
a ratio take turns, and the fastest round of each counts. Seconds are those of the processor.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import contextlib
import subprocess
import sys
import time
import warnings

import numpy as np

ROWS, COLUMNS, SPARSE_COLUMNS, ENTRIES = 200_000, 100, 50_000, 75

warnings.filterwarnings("ignore")


class Ours:
    """The library's benchmark program, one task at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, task):
        self.process.stdin.write(task + "\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        if seconds != seconds:
            sys.exit(f"the benchmark program does not know the task {task}")
        return seconds


@contextlib.contextmanager
def silence():
    """Without what compiled code prints."""
    kept = [os.dup(1), os.dup(2)]
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        yield
    finally:
        for number, copy in zip((1, 2), kept):
            os.dup2(copy, number)
            os.close(copy)
        os.close(sink)


def timed(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def row(what, ours, theirs, goal):
    ratio = theirs / ours
    verdict = "" if goal is None else ("met" if ratio >= goal else "missed")
    goal = "" if goal is None else f">= {goal:.2g}"
    print(
        f"{what:<62} {1e3 * ours:>9.1f} {1e3 * theirs:>9.1f} {ratio:>7.2f}  {goal:<7} {verdict}", flush=True
    )


def compare(ours, what, task, peer, goal, rounds=7):
    """One line: `peer` is a function that returns seconds, or another task of ours."""
    best = [float("inf")] * 2
    for _ in range(rounds):
        best[0] = min(best[0], ours.seconds(task))
        best[1] = min(best[1], ours.seconds(peer) if isinstance(peer, str) else peer())
    row(what, best[0], best[1], goal)


def dense_peers(ours):
    random = np.random.default_rng(1)
    x = random.standard_normal((ROWS, COLUMNS))
    y = random.standard_normal(ROWS)
    w = np.full(COLUMNS, 0.01)
    compare(
        ours,
        "full gradient, f64, over NumPy's two products",
        "gradient-f64",
        lambda: timed(lambda: x.T @ (x @ w - y)),
        2,
        rounds=15,
    )
    x32, y32, w32 = x.astype(np.float32), y.astype(np.float32), w.astype(np.float32)
    compare(
        ours,
        "full gradient, f32, over NumPy's two products",
        "gradient-f32",
        lambda: timed(lambda: x32.T @ (x32 @ w32 - y32)),
        None,
        rounds=15,
    )
    for name, suffix, data in (("f64", "", (x, y)), ("f32", "-f32", (x32, y32))):
        for batch, goal in ((1024, 1.2), (32, 1.2), (1, 2.5)):
            peer = jax_epoch(*data, batch)
            what = f"epoch in stored order, batch {batch}, {name}, over JAX's scan"
            compare(ours, what, f"epoch-{batch}{suffix}", peer, goal, rounds=5)
    from sklearn.linear_model import SGDRegressor

    def sgd():
        model = SGDRegressor(
            penalty=None,
            max_iter=1,
            tol=None,
            shuffle=False,
            learning_rate="constant",
            eta0=1e-4,
            fit_intercept=False,
        )
        return timed(lambda: model.fit(x, y))

    compare(ours, "epoch, batch 1, f64, over SGDRegressor", "epoch-1", sgd, 6, rounds=5)


def jax_epoch(x, y, batch):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    count = ROWS // batch
    xs = jnp.asarray(x[: count * batch].reshape(count, batch, COLUMNS))
    ys = jnp.asarray(y[: count * batch].reshape(count, batch))

    @jax.jit
    def epoch(w, xs, ys):
        def step(w, rows):
            a, b = rows
            return w - 1e-4 / batch * (a.T @ (a @ w - b)), None

        return jax.lax.scan(step, w, (xs, ys))[0]

    w = jnp.zeros(COLUMNS, dtype=x.dtype)
    epoch(w, xs, ys).block_until_ready()
    return lambda: timed(lambda: epoch(w, xs, ys).block_until_ready())


def sparse_peers(ours):
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    random = np.random.default_rng(1)
    starts, indices = [0], []
    for _ in range(ROWS):
        columns = np.unique((SPARSE_COLUMNS * random.random(ENTRIES) * random.random(ENTRIES)).astype(np.int32))
        indices.append(columns)
        starts.append(starts[-1] + len(columns))
    indices = np.concatenate(indices)
    table = csr_matrix((random.random(len(indices)), indices, starts), shape=(ROWS, SPARSE_COLUMNS))
    signs = np.where(random.random(ROWS) < 0.5, -1.0, 1.0)

    def sgd():
        model = SGDClassifier(loss="log_loss", penalty=None, max_iter=1, tol=None, shuffle=False, fit_intercept=False)
        return timed(lambda: model.fit(table, signs))

    what = "sparse logistic epoch over SGDClassifier's"
    compare(ours, what, "sparse-epoch-1", sgd, 1.5, rounds=4)
    epochs = 5

    def saga():
        model = LogisticRegression(solver="saga", max_iter=epochs, tol=0.0, fit_intercept=False)
        return timed(lambda: model.fit(table, signs)) / epochs

    compare(ours, "sparse logistic gradient of all rows over saga's epoch", "sparse", saga, 1.5, rounds=2)
    try:
        from cyanure.estimators import Classifier
    except ImportError as error:
        print(f"cyanure is not compared: {error}")
        return
    for solver in ("svrg", "qning-svrg", "acc-svrg", "miso", "catalyst-miso"):
        seconds = {}
        for many in (epochs, 3 * epochs):
            def fit(many=many):
                model = Classifier(
                    loss="logistic",
                    penalty="l2",
                    lambda_1=1e-5,
                    solver=solver,
                    max_iter=many,
                    tol=0.0,
                    duality_gap_interval=10**6,
                    fit_intercept=False,
                    verbose=False,
                    n_threads=1,
                )
                with silence():
                    model.fit(table, signs)

            seconds[many] = min(timed(fit) for _ in range(2))
        # What a fit costs besides its epochs is the same in both.
        per_epoch = (seconds[3 * epochs] - seconds[epochs]) / (2 * epochs)
        ours_best = min(ours.seconds("sparse") for _ in range(5))
        row(f"sparse logistic gradient of all rows over cyanure's {solver}", ours_best, per_epoch, 1.2)


def main():
    ours = Ours(sys.argv[1])
    print(f"{'what':<62} {'ours, ms':>9} {'peer, ms':>9} {'ratio':>7}  {'goal':<7}")
    # The first rounds of anything are slow.
    for task in ("gradient-f64", "gradient-f32", "sparse"):
        ours.seconds(task)
    compare(ours, "full gradient, f64: share of the read bandwidth", "gradient-f64", "read", 0.9, rounds=20)
    compare(ours, "epoch of random rows, batch 1024, over a plain loop", "shuffled", "shuffled-plain", 1.3)
    compare(ours, "batch of 10^9 rows: a full gradient over it", "huge-batch", "gradient-f64", 1 / 1.3, rounds=15)
    dense_peers(ours)
    sparse_peers(ours)


if __name__ == "__main__":
    main()
