"""Least squares on a stream: rows arrive, none is kept, and the end is a certificate.

The gradient of one row is a (<a, x> - y): the further x is from the solution, the larger its noise. The textbook's bound on the variance
does not hold; the bound that grows with the distance does.
"""

import sys

import matplotlib
import numpy as np
import pasta_opt
from numpy.typing import NDArray

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

TRUTH = np.array([1.0, -2.0, 3.0, 0.0, 0.5])


def gradient(x: NDArray[np.float64], rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The losses of n rows, and the sum of their gradients."""
    a = rng.normal(size=(n, len(TRUTH)))
    y = a @ TRUTH + rng.standard_t(df=5, size=n)
    residual = a @ x - y
    return residual**2 / 2, residual @ a


def main(figure: str) -> None:
    result = pasta_opt.minimize(gradient, np.zeros(5), target=0.1)
    print(result)
    assert result.certificate is not None and result.certificate.is_certified
    # f(x) = |x - truth|^2/2 + constant, so its gradient is x - truth.
    print(f"\nthe gradient's norm is {np.linalg.norm(result.x - TRUTH):.3f}, and was certified to be at most 0.1")
    fig, ax = plt.subplots(figsize=(5, 3.2))
    ax.plot(result.trace["samples"], result.trace["distance"], marker=".")
    ax.axhline(float(np.linalg.norm(TRUTH)), color="grey", linestyle=":", label="|truth - x0|")
    ax.set(xlabel="samples", ylabel="distance from x0", title="least squares on a stream")
    ax.legend()
    fig.tight_layout()
    fig.savefig(figure)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "least_squares.svg")
