"""Bayesian logistic regression by variational inference, to a certificate.

The posterior of a logistic regression is approximated by independent normals N(m, s^2). The negative evidence lower bound is an expectation over the draw of
a row and of a standard normal vector e, with w = m + s e (the reparameterisation trick). Its stochastic gradients do not have bounded variance: the noise grows with
the distance (Domke, Gower and Garrigos 2023), which is what this library is for. Parameters are m and log s.
"""

import sys

import matplotlib
import numpy as np
import pasta_opt
from numpy.typing import NDArray

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

Vector = NDArray[np.float64]
ROWS, DIM = 300, 3
RNG = np.random.default_rng(0)
A: Vector = RNG.normal(size=(ROWS, DIM))
TRUTH = np.array([1.0, -2.0, 0.5])
SIGNS: Vector = np.where(RNG.random(ROWS) < 1 / (1 + np.exp(-A @ TRUTH)), 1.0, -1.0)


def negative_elbo(x: Vector, rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    """n draws of the negative evidence lower bound, over the number of rows, and the sum of their gradients."""
    m, log_s = x[:DIM], x[DIM:]
    s = np.exp(log_s)
    e = rng.normal(size=(n, DIM))
    w = m + s * e
    row = rng.integers(0, ROWS, size=n)
    margin = SIGNS[row] * np.einsum("ij,ij->i", A[row], w)
    # -log p(y | w) of one row, times all rows; the prior is N(0, 1), the entropy of the normal is log s and a constant.
    losses = np.logaddexp(0.0, -margin) + ((w**2).sum(axis=1) / 2 - log_s.sum()) / ROWS
    slope = (-SIGNS[row] / (1 + np.exp(margin)))[:, None] * A[row] + w / ROWS
    in_s = (slope * e * s).sum(axis=0) - n / ROWS
    return losses, np.concatenate([slope.sum(axis=0), in_s])


def main(figure: str) -> None:
    result = pasta_opt.minimize(negative_elbo, np.zeros(2 * DIM), target=0.02)
    print(result)
    assert result.certificate is not None and result.certificate.is_certified
    mean, deviation = result.x[:DIM], np.exp(result.x[DIM:])
    print("\ncoefficient  mean  deviation  truth")
    for k in range(DIM):
        print(f"{k:11}  {mean[k]:5.2f}  {deviation[k]:9.2f}  {TRUTH[k]:5.2f}")
    # Two deviations and some: with 300 rows the posterior is that wide.
    assert (np.abs(mean - TRUTH) < 4 * deviation + 0.1).all()
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    grid = np.linspace(-3.5, 2.5, 400)
    for k in range(DIM):
        left.plot(grid, np.exp(-(((grid - mean[k]) / deviation[k]) ** 2) / 2) / deviation[k], label=f"w{k}")
        left.axvline(TRUTH[k], color=f"C{k}", linestyle=":")
    left.set(title="posterior (dotted: truth)", xlabel="coefficient")
    left.legend()
    right.plot(result.trace["samples"], result.trace["distance"], marker=".")
    right.set(title="the run", xlabel="samples", ylabel="distance from x0")
    fig.tight_layout()
    fig.savefig(figure)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "variational.svg")
