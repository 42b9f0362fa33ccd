"""Stochastic optimisation you can trust when the noise grows as you move.

:func:`minimize` minimises f(x) = E f(x, xi) from stochastic gradients that a Python function computes. It counts every sample, ends
with a reason, and with ``target=`` says at the end, with a stated confidence, how small the gradient is. The same seed gives the same
bits on any number of threads.

:class:`PastaRegressor` and :class:`PastaClassifier` are estimators for scikit-learn; ``pasta_opt.jax`` and ``pasta_opt.torch`` are for JAX and
PyTorch. None of these is imported before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import methods
from ._asktell import AskTell, Block
from ._engine import __version__
from ._measure import calibrate, certify, check, compare, forecast, lower_bound, plan, verify
from ._minimize import Exact, Growth, Kurtosis, Variance, minimize, resume
from ._native import HardInstance, Native, Table, read_problem
from ._oracle import Oracle, Problem
from ._progress import Moment
from ._result import Certificate, Forecast, Ledger, Result, Stop
from ._serve import serve
from ._terms import Ball, Box, ElasticNet, GroupL2, L1, LogBarrier, NonNegative, OwnTerm, Polyhedron, Simplex, Term, TotalVariation
from .methods import (
    AdagradNorm,
    AdagradNormAveraged,
    Adam,
    Auto,
    ClippedSgd,
    Dog,
    Halpern,
    HorizonSgd,
    KrasnoselskiiMann,
    LipschitzConvex,
    MeanSquareSmooth,
    Momentum,
    Pl,
    Prodigy,
    ScheduleFreeAdamw,
    ScheduleFreeSgd,
    Sgd,
    SgdDecaying,
    Smooth,
    SmoothAnchored,
    SmoothConvex,
    Sps,
    StarConvex,
    Storm,
    Universal,
    WeaklyConvex,
)

if TYPE_CHECKING:
    from . import jax as jax
    from . import torch as torch
    from ._pool import Pool as Pool
    from ._sklearn import PastaClassifier as PastaClassifier
    from ._sklearn import PastaRegressor as PastaRegressor

__all__ = [
    "AdagradNorm",
    "AdagradNormAveraged",
    "Adam",
    "AskTell",
    "Auto",
    "Ball",
    "Block",
    "Box",
    "Certificate",
    "ClippedSgd",
    "Dog",
    "ElasticNet",
    "Exact",
    "Forecast",
    "GroupL2",
    "Growth",
    "Halpern",
    "HardInstance",
    "HorizonSgd",
    "KrasnoselskiiMann",
    "Kurtosis",
    "L1",
    "Ledger",
    "LipschitzConvex",
    "LogBarrier",
    "MeanSquareSmooth",
    "Moment",
    "Momentum",
    "Native",
    "NonNegative",
    "Oracle",
    "OwnTerm",
    "Pl",
    "Polyhedron",
    "Pool",
    "Problem",
    "Prodigy",
    "Result",
    "ScheduleFreeAdamw",
    "ScheduleFreeSgd",
    "Sgd",
    "SgdDecaying",
    "Simplex",
    "Smooth",
    "SmoothAnchored",
    "SmoothConvex",
    "Sps",
    "StarConvex",
    "Stop",
    "Storm",
    "Table",
    "Term",
    "TotalVariation",
    "Universal",
    "Variance",
    "WeaklyConvex",
    "__version__",
    "calibrate",
    "certify",
    "check",
    "compare",
    "forecast",
    "lower_bound",
    "methods",
    "minimize",
    "plan",
    "read_problem",
    "resume",
    "serve",
    "verify",
]

_LATER = {"PastaRegressor": "._sklearn", "PastaClassifier": "._sklearn", "Pool": "._pool", "jax": ".jax", "torch": ".torch"}


def __getattr__(name: str) -> Any:
    """Imports what needs another package when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_LATER[name], __name__)
    return module if _LATER[name] == f".{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
