#!/usr/bin/env python3
"""Verifies the certificate of a result without the program that wrote it: python3 proof/verify.py DIR, or RESULT.json PROBLEM.toml.

Written from docs/formats.md and docs/tables.md alone, with nothing but Python (3.11 or later). It covers built-in problems with normal, Student and
lognormal noise, and CSV tables of numbers with the losses least-squares and logistic. Exits with 0 if the certificate is reproduced to nine digits, with 4
and the first number that differs if not, and with 2 if it is about something else.
"""

import csv, hashlib, json, math, os, struct, sys, tomllib

MASK, DIGITS = 2**64 - 1, 1e-9
LARGE, CERTIFICATE = 1, 6

class Differs(Exception):
    """A number is not what it should be."""

class Unknown(Exception):
    """The result is about something that is not covered here."""

def same(name, written, recomputed, tolerance=0.0):
    numbers = isinstance(written, float) and isinstance(recomputed, float)
    if not (abs(written - recomputed) <= tolerance * abs(recomputed) if numbers else written == recomputed):
        raise Differs(f"{name} is {written} as written, but {recomputed} if computed again")

# Randomness by address.

def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        one, two = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (two >> 64) ^ c1 ^ k0, two & MASK, (one >> 64) ^ c3 ^ k1, one & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return c0, c1, c2, c3

def stream(seed, role, step, sample, part=0):
    block = 0
    while True:
        yield from philox((block, sample, step, part), (seed, role))
        block += 1

def derived(seed, role, number):
    return next(stream(seed, role, number, MASK, MASK))

def open_uniform(words):
    return (next(words) >> 12) * 2.0**-52 + 2.0**-53

def density(x):
    return math.exp(-x * x / 2)

R, V = 3.6541528853610088, 0.00492867323399
X = [V / density(R), R]
while len(X) < 256:
    X.append(math.sqrt(-2 * math.log(V / X[-1] + density(X[-1]))))
X.append(0.0)
F = [float(f"{density(x):.18f}") for x in X]

def normal(words):
    while True:
        word = next(words)
        i, u = word % 256, (word >> 12) * 2.0**-51 - 1
        x = u * X[i]
        if abs(x) < X[i + 1]:
            return x
        if i == 0:
            while True:
                a, b = math.log(open_uniform(words)) / R, math.log(open_uniform(words))
                if -2 * b >= a * a:
                    return a - R if u < 0 else R - a
        if F[i + 1] + (F[i] - F[i + 1]) * ((next(words) >> 11) * 2.0**-53) < density(x):
            return x

def gamma(words, shape):
    d = shape - 1 / 3
    while True:
        z = normal(words)
        v = (1 + z / math.sqrt(9 * d)) ** 3
        if v <= 0:
            continue
        u = open_uniform(words)
        if u < 1 - 0.0331 * z**4 or math.log(u) < z * z / 2 + d * (1 - v + math.log(v)):
            return d * v

def zeta(words, noise):
    """One coordinate of the noise of a sample, of variance 1."""
    z = normal(words)
    if noise["tail"] == "student-t":
        dof = noise["dof"]
        return z * math.sqrt(dof / (2 * gamma(words, dof / 2))) * math.sqrt((dof - 2) / dof)
    s2 = noise["sigma"] ** 2
    return (math.exp(noise["sigma"] * z) - math.exp(s2 / 2)) / math.sqrt(math.exp(s2) * math.expm1(s2))

def tree(first, last, leaf, terms):
    """The sum of terms(first) .. terms(last - 1), down the tree of additions."""
    if last - first <= leaf:
        return [sum(column) for column in zip(*map(terms, range(first, last)))]
    leaves = -((first - last) // leaf)
    middle = first + (1 << ((leaves - 1).bit_length() - 1)) * leaf
    return [a + b for a, b in zip(tree(first, middle, leaf, terms), tree(middle, last, leaf, terms))]

# The built-in problems.

def length(x):
    return math.sqrt(sum(x * x for x in x))

def well(r):
    return 1.0 if r > 1 else r if r > 0.5 else 0.0 if r == 0.5 else -r

def gradient(problem, x):
    name, r = problem["name"], length(x)
    if name == "quadratic":
        return [a * x for a, x in zip(problem["spectrum"], x)]
    if name == "sine-bowl":
        return [x + math.sin(2 * x) for x in x]
    if name == "soft-absolute":
        return [x / math.sqrt(1 + r * r) for x in x]
    if name == "ramp":
        end = problem["reach"] + problem["slope"] / problem["curvature"]
        return [-problem["slope"] if x[0] <= problem["reach"] else min(problem["curvature"] * (x[0] - end), 0.0)]
    if name == "huber":
        return [problem["curvature"] * x / max(1.0, r * problem["curvature"] / problem["lipschitz"]) for x in x]
    if name == "kinked-well":
        return [x / r * well(r) if r else 0.0 for x in x]
    if name == "wells":
        return [well(abs(c)) * math.copysign(1, c) / len(x) for c in x]
    if name == "absolute":
        return [math.copysign(1, c) / math.sqrt(len(x)) if c else 0.0 for c in x]
    if name == "clover":
        angle, depth = 4 * math.atan2(x[1], x[0]), problem["depth"]
        radial, turning = 1 + depth * math.cos(angle), -2 * depth * math.sin(angle)
        return [radial * x[0] - turning * x[1], radial * x[1] + turning * x[0]]
    if name == "flat":
        return [0.0 for _ in x]
    raise Unknown(f"the problem {name!r}")

def sums(problem, noise, x, seed, n):
    """The distance from the start, and the function that gives the sum over n samples of a step."""
    g, d, start = gradient(problem, x), len(x), problem["start"]
    far = length([a - b for a, b in zip(x, start if isinstance(start, list) else [start] * d)])
    sigma = math.sqrt(noise["growth"] ** 2 * far ** noise.get("exponent", 2.0) + noise["floor"] ** 2)
    if noise["tail"] == "gaussian":
        def at(step):
            words = stream(seed, CERTIFICATE, step, MASK)
            return [n * g + math.sqrt(n) * sigma / math.sqrt(d) * normal(words) for g in g]
    elif noise["tail"] in ("student-t", "lognormal"):
        def at(step):
            def sample(i):
                words = stream(seed, CERTIFICATE, step, i)
                return [zeta(words, noise) for _ in x]
            return [n * g + sigma / math.sqrt(d) * u for g, u in zip(g, tree(0, n, 64, sample))]
    else:
        raise Unknown(f"{noise['tail']} noise")
    return far, at

# The bound.

def declared(basis, far):
    """The declared variance of one sample; None if there is none."""
    if "variance" in basis:
        return basis["variance"]
    if "growth" in basis:
        same("the distance in the claim", basis["growth"]["distance"], far, DIGITS)
        return (basis["growth"]["growth"] * far) ** 2 + basis["growth"]["floor"] ** 2
    if "kurtosis" in basis:
        return None
    raise Unknown(f"the basis {basis}")

def bounded(made, basis, d, at, far):
    """k, the bound at the end, the bound on v, the mean's length and the scatter; it stops where the program should have stopped."""
    claim, m, delta = made["claim"], made["samples_each"], made["claim"]["delta"]
    variance = declared(basis, far)
    v = None if variance is None else variance / m
    share = 1.0 if v is not None else 0.8
    logs = [-math.log(0.8 * 0.2**i * share * delta) for i in range(3)]
    totals, mean, scatter, bound = [[0.0] * d for _ in logs], [0.0] * d, 0.0, None
    look, due, k = 0, int(made["planned"] / 4), 0
    group = min(max(10**6 // (d * m), 1), 32)
    while k < made["sub_batches"] and (bound is None or bound > claim["target"]):
        for _ in range(min(group, made["sub_batches"] - k)):
            x = [c / m for c in at((made["attempt"] << 40) + k)]
            k += 1
            scatter += sum((a - b) ** 2 for a, b in zip(x, mean)) * (k - 1) / k
            mean = [b + (a - b) / k for a, b in zip(x, mean)]
            for total, s in zip(totals, made["scales"]):
                t = s * length(x)
                factor = math.log1p(t + t * t / 2) / t if t > 1e-8 else 1.0
                total[:] = [a + factor * b for a, b in zip(total, x)]
        if variance is None and k >= max(due, 2):
            kurtosis = basis["kurtosis"] / m + 3 * (1 - 1 / m)
            t = math.sqrt((kurtosis + 3) * -math.log(0.2 * 0.5 ** (look + 1) * delta) / (k // 2))
            look, due = look + 1, 2 * k
            if t < 1:
                v = min(v or math.inf, scatter / (k - 1) / (1 - t))
        for total, s, log in zip(totals, made["scales"], logs):
            c = length(total) / k
            if v is not None and k >= 20 * log and s * s * v <= 0.01 and s * c <= 0.17:
                b = c + s * v / 2 + log / (s * k)
                u = 2 * b / (1 + math.sqrt(1 - 2 * s * b))
                bound = u if bound is None else min(bound, u)
    return k, bound, v, length(mean), scatter

# Tables.

def rows_of(problem, folder):
    with open(os.path.join(folder, problem["table"]), newline="") as file:
        head, *rows = [row for row in csv.reader(file) if row]
    label = problem.get("label", head[-1])
    index = head.index(label) if isinstance(label, str) else label - 1
    ignored = {head.index(name) for name in problem.get("ignore", [])} | {index}
    features = [[float(cell) for i, cell in enumerate(row) if i not in ignored] for row in rows]
    return features, [float(row[index]) for row in rows]

def table_gradient(problem, folder, x):
    """The gradient at x, and how large its terms are."""
    loss, intercept = problem["loss"], problem.get("intercept", True)
    if loss not in ("least-squares", "logistic") or problem.get("degree", 1) != 1 or "weight" in problem:
        raise Unknown("this loss or design")
    features, labels = rows_of(problem, folder)
    n = len(features)
    if problem.get("standardise", True):
        for i in range(len(features[0])):
            column = [row[i] for row in features]
            shift = math.fsum(column) / n if intercept else 0.0
            scale = math.sqrt(math.fsum((a - shift) ** 2 for a in column) / n) or math.inf
            for row in features:
                row[i] = (row[i] - shift) / scale
    features = [row + [1.0] * intercept for row in features]
    slopes = []
    for row, y in zip(features, labels):
        z = math.fsum(a * w for a, w in zip(row, x))
        sign = 1.0 if y > 0 else -1.0
        slopes.append(z - y if loss == "least-squares" else -sign / (1 + math.exp(sign * z)))
    penalty = problem.get("penalty", 0.0)
    g, size = [], 0.0
    for i, w in enumerate(x):
        column = [slope * row[i] for slope, row in zip(slopes, features)]
        g.append(math.fsum(column) / n + (0.0 if intercept and i + 1 == len(x) else penalty * w))
        size = max(size, math.fsum(map(abs, column)) / n)
    return g, size

def verify(result, problem_file, folder):
    same("format", result["format"], 2)
    certificate, x = result["certificate"], result["point"]
    if certificate is None or certificate.get("made") is None or x is None:
        raise Unknown("a result without a certificate, or with its point in another file")
    made, problem, noise = certificate["made"], problem_file["problem"], problem_file.get("noise")
    digest = hashlib.sha256(struct.pack(f"<{len(x)}d", *x)).digest()
    same("certificate.made.point", made["point"], digest.hex())
    by_hand, i, delta = certificate["by_hand"], made["attempt"], certificate["delta"]
    if by_hand:
        seed, attempt = derived(result["seed"], CERTIFICATE, int.from_bytes(digest[:8], "big")), certificate["attempt"]
        same("certificate.made.attempt", i, 0 if attempt in (None, 1) else 2**23 + attempt)
        share = delta if attempt is None else delta / (attempt * (attempt + 1.0))
    else:
        same("seed", result["seed"], problem_file.get("seed", 1) & MASK)
        by = result["by"]
        seed = result["seed"] if by is None else derived(result["seed"], LARGE, 0 if by == "recipe" else 1)
        if problem_file.get("recipe", {}).get("name") == "universal":
            # Each lane has a seed of its own, and attempts are numbered over all lanes.
            seed = next((lane for lane in (derived(seed, LARGE, n) for n in range(401)) if lane == made["seed"]), seed)
        share = (delta if by is None else delta / 2) / (i * (i + 1.0))
    same("certificate.made.seed", made["seed"], seed)
    same("certificate.made.claim.delta", made["claim"]["delta"], share)
    same("certificate.target", certificate["target"], made["claim"]["target"])
    if certificate["verdict"] not in ("certified", "above", "out-of-budget", "not-reached"):
        raise Unknown(f"the verdict {certificate['verdict']!r}")
    if certificate["basis"] == "exact":
        g, size = table_gradient(problem, folder, x) if "table" in problem else (gradient(problem, x), 1.0)
        if abs(certificate["bound"] - length(g)) > DIGITS * length(g) + 1e-12 * size:
            same("certificate.bound", certificate["bound"], length(g), DIGITS)
        done = "the gradient computed again"
    else:
        if noise is None:
            raise Unknown("samples of a table or of a simulator")
        far, at = sums(problem, noise, x, seed, made["samples_each"])
        k, bound, v, mean, scatter = bounded(made, certificate["basis"], len(x), at, far)
        same("certificate.made.sub_batches", made["sub_batches"], k)
        same("certificate.made.mean", made["mean"], mean, DIGITS)
        same("certificate.made.scatter", made["scatter"], scatter, DIGITS)
        same("certificate.made.variance", made["variance"], v, DIGITS)
        # The program's is larger by its roundings, at most 2e-11 sqrt(m) of it.
        same("certificate.bound", certificate["bound"], bound, DIGITS + 1e-10 * math.sqrt(made["samples_each"]))
        done = f"{k} sub-batches of {made['samples_each']} samples redrawn"
    is_below = certificate["bound"] is not None and certificate["bound"] <= certificate["target"]
    same("certificate.verdict", certificate["verdict"] == "certified", is_below)
    return f"verified: {done}, bound {certificate['bound']} reproduced"

def main(arguments):
    path, problem = (arguments + [None])[:2]
    if os.path.isdir(path):
        path, problem = os.path.join(path, "result.json"), os.path.join(path, "problem.toml")
    try:
        with open(path) as file, open(problem, "rb") as described:
            print(verify(json.load(file), tomllib.load(described), os.path.dirname(os.path.abspath(problem))))
        return 0
    except Differs as error:
        print(f"not verified: {error}")
        return 4
    except Unknown as error:
        print(f"not covered: {error}")
        return 2

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
