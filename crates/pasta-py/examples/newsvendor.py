"""A newsvendor with three papers and one van, simulated in numpy: how many of each to order?

Demand is random and correlated; what is not sold is lost, what is missing is profit forgone, and a van that is too full costs more the fuller it is. No formula for the
best order is used: only simulated days, each of which gives the cost and its derivative. At the end the gradient is certified, which says that no small change of the
order would save much.
"""

import sys

import matplotlib
import numpy as np
import pasta_opt
from numpy.typing import NDArray

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

Vector = NDArray[np.float64]
#: What an unsold and a missing paper cost, in tens of cents, and how many the van holds, in hundreds.
OVER = np.array([1.0, 1.5, 0.5])
UNDER = np.array([3.0, 2.0, 4.0])
VAN = 9.0


def demand(rng: np.random.Generator, n: int) -> Vector:
    """n days: hundreds of readers of each paper, more of all when there is news."""
    news = rng.normal(size=(n, 1))
    drawn: Vector = np.exp(1.0 + 0.25 * news + 0.3 * rng.normal(size=(n, 3)))
    return drawn


def day(x: Vector, rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    """The costs of n days, and the sum of their derivatives."""
    d = demand(rng, n)
    short = d > x
    crowd = max(0.0, x.sum() - VAN)
    costs = np.where(short, UNDER * (d - x), OVER * (x - d)).sum(axis=1) + crowd**2 / 2
    slopes = np.where(short, -UNDER, OVER).sum(axis=0) + n * crowd
    return costs, slopes


def main(figure: str) -> None:
    result = pasta_opt.minimize(day, np.full(3, 3.0), target=0.05)
    print(result)
    assert result.certificate is not None and result.certificate.is_certified
    days = demand(np.random.default_rng(1), 200_000)
    # At the optimum the share of days on which paper k runs out is (OVER_k + price of room)/(OVER_k + UNDER_k), with one price for all.
    short = (days > result.x).mean(axis=0)
    price = short * (OVER + UNDER) - OVER
    print(f"\norder {np.round(result.x, 2)} hundreds; the van is {result.x.sum() / VAN:.0%} full; room is worth {np.round(price, 2)} to each paper")
    assert np.ptp(price) < 0.15
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    for k in range(3):
        left.hist(days[:20_000, k], bins=80, histtype="step", label=f"paper {k}")
        left.axvline(result.x[k], color=f"C{k}", linestyle=":")
    left.set(title="demand (dotted: orders)", xlabel="hundreds", xlim=(0, 12))
    left.legend()
    right.plot(result.trace["samples"], result.trace["distance"], marker=".")
    right.set(title="the run", xlabel="simulated days", ylabel="distance from the first order")
    fig.tight_layout()
    fig.savefig(figure)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "newsvendor.svg")
