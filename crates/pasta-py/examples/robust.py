"""Robust regression on a raw table, where SGDRegressor fails in silence and PastaRegressor ends with a certificate.

Columns are as they come: a share, an age in years, an income, a size in square centimetres. One row in twenty has a label from another planet. Both estimators minimise the Huber
loss with the settings that they have by default.
"""

import sys
import warnings

import matplotlib
import numpy as np
import pasta_opt
from sklearn.linear_model import SGDRegressor  # type: ignore[import-untyped,unused-ignore]

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COEF = np.array([20.0, 0.5, 0.0002, 0.001])


def main(figure: str) -> None:
    rng = np.random.default_rng(0)
    n = 2_000
    rows = np.column_stack([rng.random(n), rng.uniform(18, 90, n), rng.lognormal(10.5, 0.6, n), rng.uniform(1e4, 1e5, n)])
    clean = rows @ COEF + 7
    labels = clean + rng.normal(size=n)
    labels[::20] += 1000
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        theirs = SGDRegressor(loss="huber", random_state=0).fit(rows, labels)
    ours = pasta_opt.PastaRegressor("huber").fit(rows, labels)
    errors = {name: float(np.sqrt(np.mean((model.predict(rows) - clean) ** 2))) for name, model in [("SGDRegressor", theirs), ("PastaRegressor", ours)]}
    print(f"SGDRegressor:   error {errors['SGDRegressor']:.3g}, {len(caught)} warnings")
    print(f"PastaRegressor: error {errors['PastaRegressor']:.3g}, {ours.certificate_.verdict}, |grad f| = {ours.certificate_.gradient:.2g}")
    print(f"                coefficients {ours.coef_}, intercept {ours.intercept_:.3f}; true {COEF} and 7")
    assert ours.certificate_.verdict == "certified" and errors["PastaRegressor"] < 0.5
    assert not caught and errors["SGDRegressor"] > 1e3
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.2))
    for ax, (name, model) in zip(axes, [("SGDRegressor", theirs), ("PastaRegressor", ours)], strict=True):
        ax.plot(clean[:500], model.predict(rows[:500]), ".", markersize=3)
        ax.plot([clean.min(), clean.max()], [clean.min(), clean.max()], color="grey", linewidth=1)
        ax.set(title=name, xlabel="truth", ylabel="prediction")
    fig.tight_layout()
    fig.savefig(figure)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "robust.svg")
