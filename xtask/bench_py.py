"""What a call of an oracle in Python costs beside a loop in Python that calls the same function. Ratios of one run."""

import subprocess
import sys
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
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


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
print(f"grad(x, rng, n), d = {D}, n = {N}: {1e6 * theirs / CALLS:.0f} us a call in a loop, {ours / theirs:.3f} times that in minimize")
ours, theirs = best(lambda: run(single, np.zeros(3), 80, N)), best(lambda: loop(single, np.zeros(3), 80 * N))
print(f"grad(x, rng), d = 3: {1e6 * theirs / 80 / N:.2f} us a sample in a loop, {1e6 * (ours - theirs) / 80 / N:.2f} us more in minimize")
start = "import time, numpy; t = time.perf_counter(); import pasta_opt; print(time.perf_counter() - t)"
seconds = min(float(subprocess.check_output([sys.executable, "-c", start])) for _ in range(5))
print(f"import pasta_opt, beyond numpy: {seconds:.3f} s")
