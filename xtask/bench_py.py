"""What a call of an oracle in Python costs beside a loop in Python that calls the same function, and what a fit of PastaRegressor costs beside the
program and beside scikit-learn's SGDRegressor. Ratios of one run."""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import pasta_opt

D, N, CALLS = 100, 256, 400
TRUTH = np.linspace(-1.0, 1.0, D)


def batched(x, rng, n):
    a = rng.normal(size=(n, D))
    return (a @ x - a @ TRUTH - rng.normal(size=n)) @ a


def single(x, rng):
    return x + rng.normal(size=3)


def timed(work):
    # Of the processor, all threads: other work on the machine does not count.
    begun = time.process_time()
    work()
    return time.process_time() - begun


def loop(oracle, x, calls, *n):
    rng = np.random.Generator(np.random.Philox(1))
    for _ in range(calls):
        x = x - 1e-4 * oracle(x, rng, *n)


def run(oracle, x, calls, n):
    method = pasta_opt.methods.Sgd(eta=1e-6, steps=calls, batch=n)
    pasta_opt.minimize(pasta_opt.Oracle(oracle, losses=False), x, method=method)


def best(work, times=7):
    return min(timed(work) for _ in range(times))


ours, theirs = (best(lambda: f(batched, np.zeros(D), CALLS, N)) for f in (run, loop))
print(f"grad(x, rng, n), d = {D}, n = {N}: {1e6 * theirs / CALLS:.0f} us a call in a loop, {ours / theirs:.3f} times that in minimize (goal: at most 1.15)")
ours, theirs = best(lambda: run(single, np.zeros(3), 80, N)), best(lambda: loop(single, np.zeros(3), 80 * N))
print(f"grad(x, rng), d = 3: {1e6 * theirs / 80 / N:.2f} us a sample in a loop, {1e6 * (ours - theirs) / 80 / N:.2f} us more in minimize (goal: at most 2)")
start = "import time, numpy; t = time.process_time(); import pasta_opt; print(time.process_time() - t)"
seconds = min(float(subprocess.check_output([sys.executable, "-c", start])) for _ in range(5))
print(f"import pasta_opt, beyond numpy: {seconds:.3f} s (goal: below 0.15)")

ROWS = 200_000
# A fit in a process of its own: seconds of the processor of the fit alone, and how much the peak of memory grew, in megabytes.
FIT = """
import json, resource, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
if sys.argv[3] == "ours":
    from pasta_opt import PastaRegressor
    model = PastaRegressor(threads=1)
    PastaRegressor(threads=1).fit(X[:100], y[:100])
else:
    from sklearn.linear_model import SGDRegressor
    # Few epochs: what it keeps in memory does not depend on them.
    model = SGDRegressor(max_iter=5, tol=None, random_state=0)
    SGDRegressor().fit(X[:100], y[:100])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.process_time()
model.fit(X, y)
if sys.argv[3] == "ours":
    assert model.method_ == "exact" and model.stop_ == "certified", (model.method_, model.stop_)
print(json.dumps([time.process_time() - begun, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""
with tempfile.TemporaryDirectory() as folder:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(ROWS, D)) * np.geomspace(0.1, 10, D) + 1
    np.save(f"{folder}/x.npy", a)
    np.save(f"{folder}/y.npy", a @ TRUTH + rng.normal(size=ROWS))
    del a
    files = [f"{folder}/x.npy", f"{folder}/y.npy"]

    def python(who):
        return json.loads(subprocess.check_output([sys.executable, "-c", FIT, *files, who]))

    def program():
        """Seconds of the processor in all, and of the clock for the fit alone as the program says it."""
        command = [sys.executable, "-m", "pasta_opt", "fit", files[0], "--labels", files[1], "--loss", "least-squares", "--threads", "1"]
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        alone = float(re.search(r"([0-9.]+) s to fit", said).group(1))
        return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime, alone

    ours, theirs, programs = [], [], []
    for _ in range(4):
        ours.append(python("ours"))
        programs.append(program())
    for _ in range(2):
        theirs.append(python("theirs"))
    fit, own, alone = (min(times) for times in ([seconds for seconds, _ in ours], *zip(*programs, strict=True)))
    print(
        f"PastaRegressor.fit, {ROWS} x {D}: {fit:.2f} s, {fit / own:.2f} times the program, start and reading included ({own:.2f} s; goal: at most 1.1); "
        f"the program's fit alone takes {alone:.2f} s of the clock"
    )
    grown, other = (max(megabytes for _, megabytes in runs) for runs in (ours, theirs))
    size = ROWS * D * 8 / 2**20
    print(
        f"memory that a fit adds to the {size:.0f} MB of the table: {grown:.0f} MB, {grown / size:.2f} copies (goal: none); "
        f"SGDRegressor {other:.0f} MB, {other / size:.2f} copies"
    )
