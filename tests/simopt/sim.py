"""A problem of simoptlib as a simulator: python3 sim.py PROBLEM.

The variables of these problems are positive; here they are exp(z), so that every z is allowed. A sample is one replication of the package's own model, whose
generators (MRG32k3a) are seeded by the sample.
"""
import sys

import numpy as np
from mrg32k3a.mrg32k3a import MRG32k3a
from simopt.directory import problem_directory

import pasta

problem = problem_directory[sys.argv[1]]()
sign = -problem.minmax[0]
M1, M2 = 4294967087, 4294944443


def generator(rng):
    # Three words below each modulus, not all zero.
    seed = [1 + rng.randrange(M1 - 1) for _ in range(3)] + [1 + rng.randrange(M2 - 1) for _ in range(3)]
    return MRG32k3a(ref_seed=tuple(seed))


def sample(z, rng):
    x = tuple(np.exp(z))
    generators = [generator(rng) for _ in range(problem.model.n_rngs)]
    problem.model.factors.update(problem.vector_to_factor_dict(x))
    problem.model.before_replicate(generators)
    problem.before_replicate(generators)
    objective = problem.replicate(x).objectives[0]
    gradient = np.zeros(len(x))
    for part in (objective.stochastic_gradients, objective.deterministic_gradients):
        if part is not None:
            gradient = gradient + np.asarray(part, dtype=float).reshape(-1)
    loss = float(objective.stochastic) + float(objective.deterministic or 0.0)
    return sign * gradient * np.array(x), sign * loss


pasta.serve(sample, dimension=problem.dim, losses=True, name=f"{problem.name} of simoptlib in exp(z)")
