"""pasta for benchopt: copy this file into `solvers/` of https://github.com/benchopt/benchmark_ols, and run `benchopt run . -s pasta`."""

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from pasta_opt import PastaRegressor


class Solver(BaseSolver):
    """The quickest way that is known for the table, until an exact pass finds the gradient small enough."""

    name = "pasta"
    install_cmd = "pip"
    requirements = ["pip::pasta-opt[sklearn]"]
    # A run is told how small its gradient shall be, not how many iterations to make; often it ends with a smaller one, so that the next tolerances change nothing.
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=20)
    parameters = {"method": [None, "auto"]}

    def set_objective(self, X, y, fit_intercept=False):
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        # Of the mean loss, at 0.
        self.start = float(np.linalg.norm(X.T @ y)) / len(y)

    def run(self, tolerance):
        self.beta = np.zeros(self.X.shape[1])
        if tolerance < 1:
            model = PastaRegressor(fit_intercept=self.fit_intercept, method=self.method, target=max(tolerance, 1e-12) * self.start)
            self.beta = model.fit(self.X, self.y).coef_

    def get_result(self):
        return {"beta": self.beta}
