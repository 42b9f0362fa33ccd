"""A newsvendor with three products: how much to order of each, before the demand is known?"""
import numpy as np
import pasta_opt

COST, PRICE = 1.0, 2.0  # what one unit costs, and what it sells for
MEAN = np.array([5.0, 6.0, 7.0])


def gradient(x, rng, n):
    """The sum of the gradients of n random days."""
    demand = rng.exponential(MEAN, size=(n, 3))
    return (COST - PRICE * (x < demand)).sum(axis=0)


# The certificate assumes a kurtosis of at most 100 of the noise; certificate= says otherwise.
result = pasta_opt.minimize(gradient, np.full(3, 5.0), target=0.05, budget=1_000_000)
print(result)
print("best orders:", MEAN * np.log(2))
