"""Stochastic optimisation you can trust when the noise grows as you move.

:func:`minimize` minimises f(x) = E f(x, xi) from stochastic gradients that a Python function computes. It counts every sample, ends
with a reason, and with ``target=`` says at the end, with a stated confidence, how small the gradient is. The same seed gives the same
bits on any number of threads.
"""

from . import methods
from ._engine import __version__
from ._measure import calibrate, certify, lower_bound
from ._minimize import Growth, Kurtosis, Moment, Variance, minimize, resume
from ._oracle import Oracle, Problem
from ._result import Certificate, Ledger, Result, Stop

__all__ = [
    "Certificate",
    "Growth",
    "Kurtosis",
    "Ledger",
    "Moment",
    "Oracle",
    "Problem",
    "Result",
    "Stop",
    "Variance",
    "__version__",
    "calibrate",
    "certify",
    "lower_bound",
    "methods",
    "minimize",
    "resume",
]
