"""Twenty steps of published optimizers on an exact gradient, as the optax package computes them.

    python3 -m venv env && env/bin/pip install optax && env/bin/python tests/peers/reference.py > tests/data/peers.json

With a file as an argument it compares that file with what optax says now (`cargo xtask evidence peers`).

f(x) = (x_0^2 + 10 x_1^2)/2 + sin(x_0), from (1, -2), in double precision. Each entry is the point that is handed out; of DoG, whose average
optax leaves to others, the iterate.
"""
import json
import sys

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import optax
from optax import contrib

START = jnp.array([1.0, -2.0])
gradient = jax.grad(lambda x: 0.5 * (x[0] ** 2 + 10 * x[1] ** 2) + jnp.sin(x[0]))


def run(optimizer, evaluate=lambda state, x: x, steps=20):
    x, state, points = START, optimizer.init(START), []
    for _ in range(steps):
        updates, state = optimizer.update(gradient(x), state, x)
        x = optax.apply_updates(x, updates)
        points.append([float(v) for v in evaluate(state, x)])
    return points


def uncorrected(count):
    """Undoes the bias correction, which the authors' own implementation leaves out by default."""
    return (1 - 0.9 ** (count + 1)) / jnp.sqrt(1 - 0.999 ** (count + 1))


def schedule_free(base, rate, first):
    optimizer = contrib.schedule_free(base, rate, b1=first)
    return run(optimizer, contrib.schedule_free_eval_params)


said = {
    "optax": optax.__version__,
    "momentum": run(optax.sgd(0.05, momentum=0.9)),
    "adam": run(optax.adam(0.1)),
    "dog": run(contrib.dog()),
    "prodigy": run(contrib.prodigy(uncorrected, betas=(0.9, 0.999), eps=1e-8, estim_lr0=1e-6)),
    "schedule-free-sgd": schedule_free(optax.sgd(0.1), 0.1, 0.9),
    "schedule-free-adamw": schedule_free(optax.adamw(0.05, b1=0.0, b2=0.999, eps=1e-8, weight_decay=0.0), 0.05, 0.9),
}
if len(sys.argv) == 1:
    print(json.dumps(said, indent=1))
    sys.exit()
with open(sys.argv[1]) as file:
    recorded = json.load(file)
names = sorted((set(said) | set(recorded)) - {"optax"})
far = {name: float(jnp.max(jnp.abs(jnp.array(said[name]) - jnp.array(recorded[name])))) for name in names}
for name, distance in far.items():
    print(f"{name}: at most {distance:.1e} from what was recorded with optax {recorded['optax']} (this is {said['optax']})")
sys.exit(max(far.values()) > 1e-11)
