"""Oracles of the library itself: problem files, tables in memory, hard instances. A run on one never calls Python."""

from __future__ import annotations

import json
import operator
import os
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _engine

Vector = NDArray[np.float64]


class Native:
    """An oracle of the library, for every function that takes an oracle: its samples cost no call of Python.

    It is the same code that the program runs: same seed, same bits. :func:`read_problem`, :class:`Table` and :class:`HardInstance` make one.
    """

    def __init__(self, native: _engine.Native) -> None:
        self._native = native

    @property
    def dim(self) -> int:
        """How many coordinates x has."""
        return self._native.dim

    @property
    def name(self) -> str:
        """What it is, in words."""
        return self._native.words

    @property
    def start(self) -> Vector:
        """Where a run starts, unless you have a better idea."""
        return self._native.start

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}, {self.dim} coordinates>"


def read_problem(file: str | os.PathLike[str]) -> Native:
    """The problem of a problem file, of whatever kind (docs/formats.md): the tables `problem` and `noise`, and each `[[term]]`, which runs on it then have."""
    path = os.fspath(file)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    return Native(_engine.read_problem(path))


class Table(Native):
    """A linear model with a loss on the rows of a table, as an oracle (docs/tables.md). Reading all rows gives its exact gradient.

    X is an array or a sparse matrix of scipy, in double or single precision; it is not copied if it is C-contiguous, or in the format CSR with
    sorted indices, and must not be written to while it is used. `loss` is one of :meth:`losses`; `parameter` its delta, level or scale.

    x is in terms of standardised columns; :meth:`model` says what it means in terms of the columns as they are.

    >>> import numpy as np, pasta_opt
    >>> a = np.arange(4.0).reshape(-1, 1)
    >>> table = pasta_opt.Table(a, 3 * a[:, 0] - 1, loss="least-squares")
    >>> result = pasta_opt.minimize(table, table.start, target=1e-6)
    >>> result.stop.kind
    'certified'
    >>> weights, intercept = table.model(result.x)
    >>> np.allclose(weights, 3), np.allclose(intercept, -1)
    (True, True)
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        loss: str = "least-squares",
        parameter: float | None = None,
        classes: int = 2,
        weights: ArrayLike | None = None,
        intercept: bool = True,
        standardise: bool = True,
        degree: int = 1,
        penalty: float = 0.0,
        threads: int | None = None,
    ) -> None:
        numbers, shape, sparse = features(X)
        labels = _labels("y", y)
        own = None if weights is None else _labels("weights", weights)
        named = (loss, None if parameter is None else _number("parameter", parameter), _whole("classes", classes, 2, 2**31))
        design = (bool(intercept), bool(standardise), _whole("degree", degree, 1, 3), _number("penalty", penalty))
        super().__init__(_engine.table(numbers, shape, sparse, labels, own, named, *design, _threads(threads)))
        self._outputs = int(classes) if loss == "multinomial" else 1

    def model(self, x: ArrayLike) -> tuple[Vector, Vector]:
        """Weights, of shape (outputs, features), and intercepts, in terms of the columns as they are (of degree 1)."""
        weights, intercepts = self._native.raw_weights(np.ascontiguousarray(x, np.float64))
        return weights.reshape(self._outputs, -1), intercepts

    @staticmethod
    def losses() -> dict[str, str]:
        """All losses with their formulas: z = <row, w> + b is the score, y the label."""
        return {name: formula for name, formula, *_ in _engine.losses()}


def features(X: Any) -> tuple[NDArray[Any], tuple[int, int], tuple[NDArray[np.uint64], NDArray[np.uint32]] | None]:
    """The numbers of a table, its shape, and the row starts and columns of a sparse one. Copies only where types or orders differ."""
    if hasattr(X, "tocsr"):
        rows = X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        rows_count, columns = rows.shape
        starts = rows.indptr.astype(np.uint64)
        # Negative columns become large ones, which are refused.
        indices = rows.indices.view(np.uint32) if rows.indices.dtype == np.int32 else rows.indices.astype(np.uint32)
        return _real(rows.data), (rows_count, columns), (starts, np.ascontiguousarray(indices))
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X must have rows and columns: {error}") from None
    if array.ndim != 2:
        raise ValueError(f"X must have rows and columns, but has shape {array.shape}")
    array = _real(array)
    return array.reshape(-1), (array.shape[0], array.shape[1]), None


def _real(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, but has dtype {array.dtype}")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    return np.require(array, dtype, ["C", "A"])


class HardInstance(Native):
    """The function of Theorem 1 (`smoothness`) or Theorem 2 (`ms_smoothness`) on which no zero-respecting method is fast, with its oracle.

    F(u, y) = f0(u) + phi(u) Fs(y); x is u and then the T coordinates of y. Its parameters are attributes, by the names that
    ``pasta-lab instance --json`` has: `T`, `p`, `D`, `scale`, `shift`, `infimum`, `eps_max`, `bound` .. (`lambda` is `lambda_`).

    >>> import numpy as np, pasta_opt
    >>> hard = pasta_opt.HardInstance(smoothness=1, gap=1, growth=1, floor=0.5, target=0.001)
    >>> hard.T, hard.dim
    (8, 9)
    >>> float(hard.gradient(np.zeros(9))[0])                   # at the start only the slope is seen
    -0.002
    """

    T: int
    p: float
    D: float
    lambda_: float
    scale: float
    shift: float
    infimum: float
    eps_max: float
    effective_smoothness: float
    bound: float | None
    sharp_bound: float | None

    def __init__(
        self,
        *,
        gap: float,
        growth: float,
        floor: float,
        target: float,
        smoothness: float | None = None,
        ms_smoothness: float | None = None,
    ) -> None:
        if (smoothness is None) == (ms_smoothness is None):
            raise ValueError("HardInstance needs smoothness (Theorem 1) or ms_smoothness (Theorem 2), and not both")
        given = {"smoothness": ms_smoothness if smoothness is None else smoothness, "gap": gap, "growth": growth, "floor": floor, "target": target}
        numbers = [_number(name, value) for name, value in given.items()]
        super().__init__(_engine.hard_instance(numbers[0], smoothness is None, *numbers[1:]))
        for name, value in json.loads(self._native.parameters()).items():
            setattr(self, "lambda_" if name == "lambda" else name, value)

    def value(self, x: ArrayLike) -> float:
        """F(x)."""
        return self._native.value(_point(x))

    def gradient(self, x: ArrayLike) -> Vector:
        """The gradient of F."""
        return self._native.gradient(_point(x))

    def stochastic_gradient(self, x: ArrayLike, z: float) -> Vector:
        """The stochastic gradient for the draw z (0 or 1, which comes with probability p), or for the mean z of a batch."""
        return self._native.stochastic_gradient(_point(x), float(z))

    def mask(self, x: ArrayLike) -> Vector:
        """Which share of each entry of y the draw decides about."""
        return self._native.mask(_point(x))

    def progress(self, x: ArrayLike, threshold: float = 0.25) -> int:
        """The last i with |y_i| above `threshold` times lambda, counted from 1; 0 if there is none."""
        return self._native.progress(_point(x), float(threshold))

    def base_value(self, x: ArrayLike) -> float:
        """Fbar(y/lambda): the chain before scaling and shift."""
        return self._native.base_value(_point(x))


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str)):
        raise TypeError(f"{name} must be a number, but is {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, but is {value!r}") from None


def _whole(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, but is {value!r}") from None
    if isinstance(value, bool) or not least <= number <= most:
        high = f"{most}" if most <= 10**6 else f"2**{(most + 1).bit_length() - 1}"
        raise ValueError(f"{name} must be a whole number from {least} to {high}, but is {value!r}")
    return number


def _threads(threads: int | None) -> int:
    if threads is None:
        return 0
    count = _whole("threads", threads, 1, 4096)
    most = max(64, 4 * (os.cpu_count() or 1))
    if count > most:
        warnings.warn(f"threads = {count} is far more than this machine has processors: {most} are started, with the same bits", RuntimeWarning, stacklevel=3)
    return min(count, most)


def _labels(name: str, values: ArrayLike) -> Vector:
    if np.iscomplexobj(values):
        raise TypeError(f"{name} must hold real numbers, but holds complex ones")
    try:
        return np.ascontiguousarray(values, np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers (classes are numbered 0, 1, ..): {error}") from None


def _point(x: ArrayLike) -> Vector:
    return np.ascontiguousarray(x, np.float64).reshape(-1)


def namespace(text: str) -> SimpleNamespace:
    """An object with the names of a JSON text."""
    found: SimpleNamespace = json.loads(text, object_hook=lambda pairs: SimpleNamespace(**pairs))
    return found
