"""pasta for benchopt: copy this file into `solvers/` of https://github.com/benchopt/benchmark_logreg_l2, and run `benchopt run . -s pasta`."""

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from pasta_opt import PastaClassifier


class Solver(BaseSolver):
    """The quickest way that is known for the table, until an exact pass finds the gradient small enough."""

    name = "pasta"
    install_cmd = "pip"
    requirements = ["pip::pasta-opt[sklearn]"]
    # A run is told how small its gradient shall be, not how many iterations to make; often it ends with a smaller one, so that the next tolerances change nothing.
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=20)
    parameters = {"method": [None, "auto"]}

    def set_objective(self, X, y, lmbd):
        self.X, self.y = X, y
        # Their loss is a sum over rows and its penalty on the columns as they are, ours a mean.
        self.settings = {"penalty": lmbd / len(y), "standardise": False, "fit_intercept": False, "method": self.method}
        # At 0.
        self.start = float(np.linalg.norm(X.T @ y)) / (2 * len(y))

    def run(self, tolerance):
        self.beta = np.zeros(self.X.shape[1])
        if tolerance < 1:
            model = PastaClassifier(**self.settings, target=max(tolerance, 1e-12) * self.start)
            self.beta = model.fit(self.X, self.y).coef_.flatten()

    def get_result(self):
        return {"beta": self.beta}
