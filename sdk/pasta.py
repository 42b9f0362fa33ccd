"""Serves a simulator to pasta. One file without dependencies; docs/pipe.md has the protocol.

    import pasta

    def sample(x, rng):             # x: the point, a tuple of floats; rng: the random.Random of this sample
        error = x[0] - rng.expovariate(1.0)
        return [error], error ** 2 / 2          # the gradient, and the loss if there are losses

    pasta.serve(sample, losses=True, name="mean of an exponential law")

Gradients may be numpy arrays; numpy.random.default_rng(rng.getrandbits(64)) is a generator of numpy for the sample.
What the program prints goes to stderr, where pasta shows it.
"""
import json, os, random, struct, sys, traceback


def serve(sample, dimension=None, losses=False, reproducible=True, pathwise=True, name=""):
    """Answers requests until pasta is gone. `dimension`: the one that there is, unless any will do; `pathwise`: False for likelihood ratios."""
    read, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(data):
        out.write(data)
        out.flush()

    hello = json.loads(read.readline())
    d = dimension or hello["dimension"]
    about = {"pasta": 1, "dimension": d, "losses": losses, "reproducible": reproducible, "squares": True, "pathwise": pathwise}
    say(json.dumps({**about, "framing": "binary", "name": name}).encode() + b"\n")
    while len(head := read.read(40)) == 40:
        id, seed, first, count, points, wanted = struct.unpack("<QQQQII", head)
        xs = [struct.unpack(f"<{d}d", read.read(8 * d)) for _ in range(points)]
        try:
            sums = [total(sample, x, seed, range(first, first + count), losses, wanted & 2) for x in xs]
            body = b"".join(to_bytes(gradient) for gradient, _, _ in sums)
            body += to_bytes([loss for _, loss, _ in sums]) if wanted & 1 else b""
            body += to_bytes([square for _, _, square in sums]) if wanted & 2 else b""
            say(struct.pack("<QII", id, 0, 0) + body)
        except Exception as error:
            traceback.print_exc()
            text = f"{type(error).__name__}: {error}".encode()
            say(struct.pack("<QII", id, 1, len(text)) + text)


def total(sample, x, seed, numbers, losses, squares):
    gradient, loss, square = None, 0.0, 0.0
    for number in numbers:
        g = sample(x, random.Random(seed << 64 | number))
        g, f = g if losses else (g, 0.0)
        if len(g) != len(x):
            raise ValueError(f"the gradient has {len(g)} numbers, the point {len(x)}")
        square += float(sum(v * v for v in g)) if squares else 0.0
        gradient = g if gradient is None else gradient + g if hasattr(g, "astype") else [a + b for a, b in zip(gradient, g)]
        loss += f
    return gradient, loss, square


def to_bytes(numbers):
    return numbers.astype("<f8").tobytes() if hasattr(numbers, "astype") else struct.pack(f"<{len(numbers)}d", *numbers)
