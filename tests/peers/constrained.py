"""auto beside projected SGD and Adam, as people write them, on eight constrained streams: python3 constrained.py > table.

Needs numpy, optax and pasta_opt. Every method draws 50,000 samples, auto with all that it spends on checks. What counts is the gradient mapping of the point that it hands out,
|x - prox(x - gamma g)|/gamma, over that of the start: g is the mean of fresh samples, the same for all points, and gamma is about 1/L at the start, the same for all methods.
The streams and the settings of the peers were fixed before the first run, and auto was not changed since.
"""
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np
import optax
import pasta_opt
from optax import projections

BUDGET, BATCH, SEEDS, JUDGED = 50_000, 32, 10, 200_000


def simplex(v):
    """The projection on x >= 0, sum x = 1, by sorting."""
    u = np.sort(v)[::-1]
    excess = (np.cumsum(u) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.count_nonzero(u > excess) - 1], 0)


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


class Portfolio:
    """Conditional value at risk, at 90 %, of a portfolio of 20 assets with one factor and tails like t(4)."""

    term = [pasta_opt.Simplex(coordinates="0..20")]
    start = np.append(np.full(20, 1 / 20), 0.0)
    mean, beta, own = np.linspace(0.05, 0.2, 20), np.linspace(0.5, 1.5, 20), np.linspace(1.5, 0.5, 20)

    def draw(self, rng, n):
        return self.mean + self.beta * rng.normal(size=(n, 1)) + self.own * rng.standard_t(4, size=(n, 20))

    def answer(self, x, returns):
        short = -returns @ x[:20] - x[20]
        tail = (short > 0) / 0.1
        return x[20] + np.maximum(short, 0) / 0.1, np.column_stack([-returns * tail[:, None], 1 - tail])

    def value(self, x):
        return 0.0

    def prox(self, v, gamma):
        return np.append(simplex(v[:20]), v[20])

    def projected(self, x, rate):
        return x.at[:20].set(projections.projection_simplex(x[:20]))


class Poisson:
    """Poisson regression with the identity link, coefficients non-negative, half of them zero."""

    term = [pasta_opt.NonNegative()]
    start = np.full(20, 0.5)
    truth = np.where(np.arange(20) % 2 == 0, np.linspace(0.1, 2.0, 20), 0.0)

    def draw(self, rng, n):
        a = rng.exponential(size=(n, 20))
        return a, rng.poisson(0.5 + a @ self.truth)

    def answer(self, x, data):
        a, y = data
        rate = 0.5 + a @ x
        return rate - y * np.log(rate), a * (1 - y / rate)[:, None]

    def value(self, x):
        return 0.0

    def prox(self, v, gamma):
        return np.maximum(v, 0)

    def projected(self, x, rate):
        return projections.projection_non_negative(x)


class Newsvendor:
    """Ten shops with a shelf each, and a store that serves what they lack; shelves are bounded, and some bounds bind."""

    upper = np.append(np.linspace(0.8, 4.0, 10), 3.0)
    term = [pasta_opt.Box(lower=0.0, upper=list(upper))]
    start = upper / 2
    size, cost, store, lost = np.linspace(-0.2, 1.0, 10), np.linspace(0.5, 1.5, 10), 1.0, 6.0

    def draw(self, rng, n):
        return np.exp(self.size + 0.3 * rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 10)))

    def answer(self, x, demand):
        lacking = np.maximum(demand - x[:10], 0)
        missed = lacking.sum(axis=1) - x[10]
        pays = self.lost * (missed > 0)
        # What the store sends costs a trip.
        sent = np.minimum(lacking.sum(axis=1), x[10])
        trip = 0.5 * (missed <= 0)
        slope = self.cost - (demand > x[:10]) * (pays + trip)[:, None]
        reserve = self.store - pays + 0.5 * (missed > 0)
        return self.cost @ x[:10] + self.store * x[10] + self.lost * np.maximum(missed, 0) + 0.5 * sent, np.column_stack([slope, reserve])

    def value(self, x):
        return 0.0

    def prox(self, v, gamma):
        return np.clip(v, 0, self.upper)

    def projected(self, x, rate):
        return projections.projection_box(x, 0.0, jnp.asarray(self.upper))


class Logistic:
    """l1 logistic regression: 100 correlated features, 8 of which matter."""

    term = [pasta_opt.L1(0.02)]
    start = np.zeros(100)
    truth = np.zeros(100)
    truth[::13] = [1, -1, 1, -1, 1, -1, 1, -1]

    def draw(self, rng, n):
        noise = rng.normal(size=(n, 100))
        a = noise.copy()
        for j in range(1, 100):
            a[:, j] = 0.5 * a[:, j - 1] + np.sqrt(0.75) * noise[:, j]
        return a, np.where(rng.random(n) < 1 / (1 + np.exp(-a @ self.truth)), 1.0, -1.0)

    def answer(self, x, data):
        a, y = data
        score = y * (a @ x)
        return np.logaddexp(0, -score), -a * (y / (1 + np.exp(score)))[:, None]

    def value(self, x):
        return 0.02 * np.abs(x).sum()

    def prox(self, v, gamma):
        return soft(v, 0.02 * gamma)

    def projected(self, x, rate):
        return jnp.sign(x) * jnp.maximum(jnp.abs(x) - 0.02 * rate, 0)


class Groups:
    """Least squares with ten groups of five coefficients, three groups of which matter, and noise like t(3)."""

    term = [pasta_opt.GroupL2(weight=0.3, size=5)]
    start = np.zeros(50)
    truth = np.repeat([1.5, 0, 0, -1, 0, 0, 0, 0.5, 0, 0], 5)
    scale = np.tile([0.5, 1, 1, 1, 2], 10)

    def draw(self, rng, n):
        a = self.scale * rng.normal(size=(n, 50))
        return a, a @ self.truth + rng.standard_t(3, size=n)

    def answer(self, x, data):
        a, y = data
        off = a @ x - y
        return off**2 / 2, a * off[:, None]

    def value(self, x):
        return 0.3 * np.linalg.norm(x.reshape(10, 5), axis=1).sum()

    def prox(self, v, gamma):
        rows = v.reshape(10, 5)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows * np.maximum(1 - 0.3 * gamma / np.maximum(norms, 1e-300), 0)).ravel()

    def projected(self, x, rate):
        rows = x.reshape(10, 5)
        norms = jnp.linalg.norm(rows, axis=1, keepdims=True)
        return (rows * jnp.maximum(1 - 0.3 * rate / jnp.maximum(norms, 1e-300), 0)).ravel()


class Ball:
    """Logistic regression in the unit ball, with features of unequal scales; the free solution is far outside."""

    term = [pasta_opt.Ball(radius=1.0)]
    start = np.zeros(30)
    scale = np.logspace(-0.5, 0.5, 30)
    truth = 5 * np.cos(np.arange(30)) / np.linalg.norm(np.cos(np.arange(30)))

    def draw(self, rng, n):
        a = self.scale * rng.normal(size=(n, 30))
        return a, np.where(rng.random(n) < 1 / (1 + np.exp(-a @ self.truth)), 1.0, -1.0)

    answer = Logistic.answer

    def value(self, x):
        return 0.0

    def prox(self, v, gamma):
        return v / max(1.0, np.linalg.norm(v))

    def projected(self, x, rate):
        return projections.projection_l2_ball(x, 1.0)


class Variational:
    """A normal law with independent coordinates for a correlated one: ten means and ten scales, of whose logarithms the entropy is made."""

    term = [pasta_opt.LogBarrier(coordinates="10..20")]
    start = np.append(np.zeros(10), np.ones(10))
    turn = np.linalg.qr(np.cos(np.outer(np.arange(1, 11), np.arange(1, 11))))[0]
    precision = turn * np.logspace(-0.75, 0.75, 10) @ turn.T
    centre = np.linspace(-2, 2, 10)

    def draw(self, rng, n):
        return rng.normal(size=(n, 10))

    def answer(self, x, z):
        off = x[:10] + x[10:] * z - self.centre
        pull = off @ self.precision
        return (off * pull).sum(axis=1) / 2, np.column_stack([pull, pull * z])

    def value(self, x):
        return -np.log(x[10:]).sum()

    def prox(self, v, gamma):
        return np.append(v[:10], (v[10:] + np.sqrt(v[10:] ** 2 + 4 * gamma)) / 2)

    def projected(self, x, rate):
        return x.at[10:].set((x[10:] + jnp.sqrt(x[10:] ** 2 + 4 * rate)) / 2)


class Mixture:
    """The shares of eight normal laws in a mixture, three of which are absent."""

    term = [pasta_opt.Simplex()]
    start = np.full(8, 1 / 8)
    share = np.array([0.3, 0.0, 0.2, 0.0, 0.25, 0.15, 0.0, 0.1])
    centre, width = np.linspace(-5, 5, 8), np.tile([0.7, 1.2], 4)

    def draw(self, rng, n):
        which = rng.choice(8, size=n, p=self.share)
        y = self.centre[which] + self.width[which] * rng.normal(size=n)
        return np.exp(-(((y[:, None] - self.centre) / self.width) ** 2) / 2) / self.width

    def answer(self, x, densities):
        mixed = densities @ x
        return -np.log(mixed), -densities / mixed[:, None]

    def value(self, x):
        return 0.0

    def prox(self, v, gamma):
        return simplex(v)

    def projected(self, x, rate):
        return projections.projection_simplex(x)


STREAMS = [Portfolio, Poisson, Newsvendor, Logistic, Groups, Ball, Variational, Mixture]


class Judge:
    """F and the gradient mapping, by fresh samples that are the same for every point."""

    def __init__(self, stream):
        self.stream, self.gamma = stream, 1.0
        x, way = stream.start, np.random.default_rng(7).normal(size=len(stream.start))
        for _ in range(10):
            # Power iteration: the curvature of f at the start, inside of the domain.
            there = stream.prox(x + 1e-3 * way / np.linalg.norm(way), 1e-9)
            change = self.gradient(there)[1] - self.gradient(x)[1]
            curvature = np.linalg.norm(change) / max(np.linalg.norm(there - x), 1e-300)
            if not curvature > 0:
                break
            self.gamma, way = 1 / curvature, change

    def gradient(self, x):
        losses, slopes, rng = 0.0, 0.0, np.random.default_rng(20_000)
        for _ in range(JUDGED // 10_000):
            loss, slope = self.stream.answer(x, self.stream.draw(rng, 10_000))
            losses, slopes = losses + np.mean(loss), slopes + slope.mean(axis=0)
        return losses / (JUDGED // 10_000), slopes / (JUDGED // 10_000)

    def __call__(self, x):
        loss, slope = self.gradient(x)
        moved = x - self.stream.prox(x - self.gamma * slope, self.gamma)
        return np.linalg.norm(moved) / self.gamma, loss + self.stream.value(x)


def auto(stream, seed):
    def oracle(x, rng, n):
        losses, slopes = stream.answer(x, stream.draw(rng, n))
        return losses, slopes.sum(axis=0)

    return pasta_opt.minimize(oracle, stream.start, budget=BUDGET, seed=seed, term=stream.term).x


def means(stream, seed):
    """Mini-batches: the mean gradient at x."""
    rng = np.random.default_rng([seed, 1])
    for _ in range(BUDGET // BATCH):
        data = stream.draw(rng, BATCH)
        yield lambda x, data=data: stream.answer(x, data)[1].mean(axis=0)


def sgd(rate):
    """A constant step."""

    def run(stream, seed):
        x = stream.start
        for gradient in means(stream, seed):
            x = stream.prox(x - rate * gradient(x), rate)
        return x

    return run


def averaged(rate):
    """Steps that fall like 1/sqrt(t), and the mean of the second half of the iterates."""

    def run(stream, seed):
        x, total = stream.start, 0.0
        for t, gradient in enumerate(means(stream, seed)):
            step = rate / np.sqrt(t + 1)
            x = stream.prox(x - step * gradient(x), step)
            total = total + x * (2 * t >= BUDGET // BATCH)
        return total / sum(2 * t >= BUDGET // BATCH for t in range(BUDGET // BATCH))

    return run


def adam(rate):
    def run(stream, seed):
        optimizer = optax.adam(rate)

        @jax.jit
        def step(gradient, state, x):
            updates, state = optimizer.update(gradient, state, x)
            return stream.projected(optax.apply_updates(x, updates), rate), state

        x = jnp.asarray(stream.start)
        state = optimizer.init(x)
        for gradient in means(stream, seed):
            x, state = step(jnp.asarray(gradient(np.asarray(x))), state, x)
        return np.asarray(x)

    return run


METHODS = {
    "auto": auto,
    "SGD .01": sgd(0.01),
    "SGD .1": sgd(0.1),
    "SGD .1/√t, averaged": averaged(0.1),
    "SGD 1/√t, averaged": averaged(1.0),
    "Adam .001": adam(1e-3),
    "Adam .01": adam(1e-2),
}

ratios, bad = {}, {}
for kind in STREAMS:
    stream = kind()
    judge = Judge(stream)
    size, value = judge(stream.start)
    for method, run in METHODS.items():
        ends = []
        for seed in range(1, SEEDS + 1):
            x = run(stream, seed)
            ends.append(judge(x) if np.all(np.isfinite(x)) else (np.inf, np.inf))
        # More than ten times the start counts as ten times.
        ratios[kind.__name__, method] = float(np.exp(np.mean([np.log(np.clip(end / size, 1e-8, 10)) for end, _ in ends])))
        bad[kind.__name__, method] = sum(not end <= value for _, end in ends)
        print(f"{kind.__name__} {method}: {ratios[kind.__name__, method]:.4g}, {bad[kind.__name__, method]} bad, gamma {judge.gamma:.3g}", file=sys.stderr, flush=True)

print("| stream | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
for kind in STREAMS:
    cells = [f"{ratios[kind.__name__, m]:.3g}" + (f" ({bad[kind.__name__, m]} bad)" if bad[kind.__name__, m] else "") for m in METHODS]
    print(f"| {kind.__name__} | " + " | ".join(cells) + " |")
together = {m: float(np.exp(np.mean([np.log(ratios[kind.__name__, m]) for kind in STREAMS]))) for m in METHODS}
print("| together | " + " | ".join(f"{together[m]:.3g}" for m in METHODS) + " |")
best = min(together[m] for m in METHODS if m != "auto")
each = [ratios[kind.__name__, "auto"] / min(ratios[kind.__name__, m] for m in METHODS if m != "auto") for kind in STREAMS]
print(f"\nauto over the best single peer: {together['auto'] / best:.2f}; over the best peer of each stream: {np.exp(np.mean(np.log(each))):.2f}, at most {max(each):.2f}")
