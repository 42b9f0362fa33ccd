"""Linear models for scikit-learn, fitted to an exact certificate."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine, methods
from ._minimize import _budget, _target
from ._native import _number, _threads, _whole, features, namespace

try:
    import scipy.sparse as sparse  # type: ignore[import-untyped]
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
    from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
    from sklearn.utils.class_weight import compute_sample_weight  # type: ignore[import-untyped]
    from sklearn.utils.extmath import safe_sparse_dot  # type: ignore[import-untyped]
    from sklearn.utils.metaestimators import available_if  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
    from sklearn.utils.validation import (  # type: ignore[import-untyped]
        _check_sample_weight,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError(f"PastaRegressor and PastaClassifier need scikit-learn 1.6 or later (pip install 'pasta-opt[sklearn]'): {error}") from error

Vector = NDArray[np.float64]

_LOSSES = {name: (labels, parameter) for name, _, labels, _, parameter in _engine.losses()}
#: Second-order steps, which are for tables alone.
EXACT = "exact"
#: `partial_fit` keeps the first rows until there are so many, and so many for each column, or so many numbers in them (32 MB).
ENOUGH_ROWS, ENOUGH_FOR_A_COLUMN, MOST_KEPT = 1000, 20, 1 << 22
#: Rows with so few numbers in them are fitted anew whenever one is added.
QUICKLY_FITTED = 1 << 15
#: A column of a stream is scaled anew if its numbers are so many times as large as they were.
WIDER = 3.0
#: Losses that see one number, and losses that see classes.
REGRESSION = [name for name, (labels, _) in _LOSSES.items() if labels in ("real", "counts")]
CLASSIFICATION = [name for name, (labels, _) in _LOSSES.items() if labels not in ("real", "counts")]


class _Linear(BaseEstimator):  # type: ignore[misc]
    """What both estimators have in common."""

    _usual: list[str]
    #: The penalty where None is given: 0 for a fit, and the usual one for a stream, which cannot be fitted again.
    _without = 0.0

    def __init__(
        self,
        loss: str,
        *,
        delta: float | None,
        level: float | None,
        scale: float | None,
        penalty: float | None,
        l1: float,
        elastic_net: float | None,
        positive: bool,
        bounds: Any,
        fit_intercept: bool,
        standardise: bool,
        target: float | str | None,
        budget: float | None,
        method: str | methods.Method | None,
        seed: int,
        threads: int | None,
        std_errors: str | None,
    ) -> None:
        self.loss = loss
        self.delta = delta
        self.level = level
        self.scale = scale
        self.penalty = penalty
        self.l1 = l1
        self.elastic_net = elastic_net
        self.positive = positive
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.target = target
        self.budget = budget
        self.method = method
        self.seed = seed
        self.threads = threads
        self.std_errors = std_errors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _named(self, classes: int = 2) -> tuple[str, float | None, int]:
        """The loss with its parameter."""
        if self.loss not in self._usual:
            raise ValueError(f"loss must be one of {', '.join(self._usual)}, but is {self.loss!r}")
        own = _LOSSES[self.loss][1]
        given = {"delta": self.delta, "level": self.level, "scale": self.scale}
        for name, value in given.items():
            if value is not None and (own is None or own[0] != name):
                raise ValueError(f"the {self.loss} loss has no {name}")
        value = None if own is None else given[own[0]]
        return self.loss, None if value is None else _number(own[0] if own else "", value), classes

    def _table(
        self,
        X: Any,
        labels: Vector,
        weights: Vector | None,
        named: tuple[str, float | None, int],
        *,
        standardise: bool,
    ) -> _engine.Native:
        numbers, shape, rows = features(X)
        penalty = self._ridge()
        design = (bool(self.fit_intercept), standardise, 1, penalty)
        return _engine.table(numbers, shape, rows, labels, weights, named, *design, _threads(self.threads))

    def _may_penalise(self) -> bool:
        """True if the penalty is left to the fit."""
        return False

    def _ridge(self) -> float:
        """The weight of |w|^2/2."""
        penalty = self._without if self._may_penalise() else _number("penalty", self.penalty)
        return penalty if self.elastic_net is None else penalty * (1.0 - self._share())

    def _share(self) -> float:
        """The share of the penalty that |w| has."""
        share = _number("elastic_net", self.elastic_net)
        if not 0 <= share <= 1:
            raise ValueError(f"elastic_net must be a share of the penalty, from 0 to 1, but is {self.elastic_net!r}")
        if self.penalty is None or self.l1 != 0:
            raise ValueError("elastic_net is the share of the penalty that |w| has: give penalty, and no l1")
        return share

    def _penalties(self, columns: int) -> tuple[float, list[float], list[float]] | None:
        """l1 and the bounds of the weights; None if there are none."""
        l1 = _number("l1", self.l1)
        if not 0 <= l1 < np.inf:
            raise ValueError(f"l1 must be at least 0 and finite, but is {self.l1!r}")
        if self.elastic_net is not None:
            l1 = self._share() * _number("penalty", self.penalty)
        lower, upper = _ends(self.bounds, columns)
        if self.positive:
            lower = [max(end, 0.0) for end in lower] or [0.0]
        return (l1, lower, upper) if l1 > 0 or lower or upper else None

    def _rounds(self, rounds: list[int]) -> Any:
        """The rounds of the fits, in the shape that other estimators have them: a number, or for classifiers an array."""
        return max(rounds)

    def summary(self) -> str:
        """The coefficients with their standard errors, and how much they explain, as a text; `summary_` has the numbers. Needs ``std_errors="classical"``, "hc0" or "hc1"."""
        check_is_fitted(self)
        found = self.__dict__.get("summary_")
        if found is None:
            raise AttributeError('there is no summary: fit with std_errors="classical", "hc0" or "hc1"')
        return "\n\n".join(_table(one, self.__dict__.get("classes_")) for one in (found if isinstance(found, list) else [found]))

    def _names(self, X: Any) -> list[str]:
        """What columns are called."""
        return [str(name) for name in getattr(self, "feature_names_in_", [f"x{place}" for place in range(X.shape[1])])]

    def _run(self, X: Any, labels: Vector, weights: Vector | None, named: tuple[str, float | None, int]) -> tuple[Vector, Vector, SimpleNamespace]:
        """Weights in rows, intercepts, and what the fit came to, with what a stream that goes on from it has to know."""
        budget = _budget(self.budget)
        method, has_steps = self._way(budget)
        target = None if self.target is None else _target(self.target)
        if isinstance(target, float) and not 0 < target < np.inf:
            raise ValueError(f"target must be positive and finite, but is {self.target!r}")
        seed, threads = _whole("seed", self.seed, 0, 2**64 - 1), _threads(self.threads)
        penalties = self._penalties(X.shape[1])
        table = self._table(X, labels, weights, named, standardise=bool(self.standardise))
        text, point = _engine.fit(table, self._names(X), method, target, budget, seed, threads, self._may_penalise(), self.std_errors, penalties)
        coef, intercept = table.raw_weights(point)
        outcome = namespace(text)
        outcome.ledger = json.loads(text)["ledger"]
        outcome.model = coef.reshape(len(intercept), -1), intercept
        outcome.begun = {**self._begun(table, X, [labels], named[0]), "parameters": [outcome.parameter]}
        if outcome.redundant is not None:
            warnings.warn(outcome.redundant, UserWarning, stacklevel=4)
        is_planned = outcome.stop == "planned-end" and has_steps
        if outcome.certificate.verdict != "certified" and not is_planned:
            warnings.warn(self._complaint(outcome, named[0]), ConvergenceWarning, stacklevel=4)
        return *outcome.model, outcome

    def _way(self, budget: int | None) -> tuple[tuple[str, dict[str, float], int, int] | None, bool]:
        """What the engine is told of the method, None if it is to choose; and whether it has steps."""
        if self.method is None:
            return None, False
        if self.method == EXACT:
            return (EXACT, {}, 0, 0), False
        method = methods.chosen(self.method)
        return method.described(budget), method.has_steps()

    def _complaint(self, outcome: SimpleNamespace, loss: str) -> str:
        certificate = outcome.certificate
        measure = "|grad f|" if self._penalties(self.n_features_in_) is None else "|x - prox(x - grad f)|"
        reached = f"{measure} came down from {certificate.start_gradient:.3g} to {certificate.gradient:.3g}, not to {certificate.target:.3g}"
        if certificate.verdict == "worse":
            rose = f"f is {certificate.objective:.6g} there"
            return f"not certified: the method ended at a point that is worse than the start ({rose}); try another scale or seed"
        if certificate.gap is not None:
            return f"not certified: f may be {certificate.gap:.3g} above its least value, more than {certificate.target:.3g}"
        if certificate.verdict == "kinks":
            return f"nothing is certified: the {loss} loss has kinks, where the gradient need not be small ({reached})"
        hint = "a penalty helps where columns nearly depend on each other or classes can be separated; a larger target asks for less, a larger budget allows more"
        why = "no further step lowers the loss within rounding" if outcome.stop == "settled" else "the rows that may be read ended first"
        if outcome.stop == "diverged":
            why = outcome.meaning
        return f"not certified: {why}; {reached} in {outcome.passes:.0f} passes; {hint}"

    def _ends(self, outcomes: list[SimpleNamespace]) -> None:
        """Says how fits ended."""
        self.method_ = outcomes[0].method
        self.n_iter_ = self._rounds([outcome.steps for outcome in outcomes])
        self.passes_ = sum(outcome.passes for outcome in outcomes)
        self.stop_ = [outcome.stop for outcome in outcomes] if len(outcomes) > 1 else outcomes[0].stop
        self.certificate_: Any = [outcome.certificate for outcome in outcomes] if len(outcomes) > 1 else outcomes[0].certificate
        begun = outcomes[0].begun
        begun["radii"], begun["states"] = [outcome.begun["radii"][0] for outcome in outcomes], [None] * len(outcomes)
        begun["parameters"] = [outcome.parameter for outcome in outcomes]
        self.deviation_ = outcomes[0].deviation
        summaries = [outcome.summary for outcome in outcomes]
        self.summary_: Any = None if summaries[0] is None else summaries if len(summaries) > 1 else summaries[0]
        self.penalty_: Any = max(outcome.penalty for outcome in outcomes)
        self.left_out_ = [column.feature for column in outcomes[0].left_out]
        self._stream = {"design": self._design(), "model": _stacked([outcome.model for outcome in outcomes]), **begun}

    def _weights(self, sample_weight: Any, X: Any) -> Vector | None:
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError(f"Negative values in data passed to `sample_weight`: row {int(np.argmax(weights < 0))}")
        if not weights.sum() > 0:
            raise ValueError("sample_weight must not be zero in every row")
        kept: Vector = np.ascontiguousarray(weights)
        return kept

    def _learn(self, X: Any, labels: list[Vector], weights: Vector | None, named: tuple[str, float | None, int]) -> tuple[Vector, Vector]:
        """Learns from a chunk of rows, for each of the vectors of labels. The first rows are kept and fitted together; then each is read once."""
        known = self.__dict__.get("_stream")
        if known is not None:
            self._is_as_before(known["design"])
        # A copy: where something is raised, the model is as it was.
        stream: dict[str, Any] = {"design": self._design(), "chunks": []} if known is None else dict(known)
        ended = None
        if "chunks" in stream:
            self._gather(stream, X, labels, weights, named)
        else:
            ended = self._pass(stream, X, labels, weights, named)
        self._stream = stream
        self.n_iter_ = self._rounds([int(np.max(self.__dict__.get("n_iter_", 0))) + 1])
        self.method_, self.certificate_, self.stop_ = stream["method"], None, "streaming"
        if ended is not None:
            warnings.warn(f"the pass ended early: {ended}", ConvergenceWarning, stacklevel=3)
        coef, intercept = stream["model"]
        return coef, intercept

    def _design(self) -> dict[str, Any]:
        """The settings that say what is minimised."""
        names = ("loss", "delta", "level", "scale", "penalty", "l1", "elastic_net", "positive", "fit_intercept", "standardise")
        # Arrays have no single answer to whether they are equal.
        return {**{name: getattr(self, name) for name in names}, "bounds": None if self.bounds is None else repr(self.bounds)}

    def _is_as_before(self, design: dict[str, Any]) -> None:
        for name, value in self._design().items():
            if value != design[name]:
                raise ValueError(f"{name} is {getattr(self, name)!r}, but was {design[name]!r} when the model saw its first rows; clone the model to begin anew")

    def _gather(self, stream: dict[str, Any], X: Any, labels: list[Vector], weights: Vector | None, named: tuple[str, float | None, int]) -> None:
        """Keeps a chunk beside those before it, and fits all of them; when there are enough, keeps the model and the scaling, and forgets the rows."""
        # Copies: the caller may use the memory again.
        chunks = [*stream["chunks"], (X.copy(), [codes.copy() for codes in labels], np.ones(X.shape[0]) if weights is None else weights.copy())]
        rows = sum(chunk.shape[0] for chunk, _, _ in chunks)
        numbers = sum(chunk.nnz if sparse.issparse(chunk) else chunk.size for chunk, _, _ in chunks)
        is_enough = rows >= max(ENOUGH_ROWS, ENOUGH_FOR_A_COLUMN * X.shape[1]) or numbers >= MOST_KEPT
        stream["chunks"] = chunks
        # Many rows are not fitted anew for each that comes: all fits together cost about ten times the last.
        if not is_enough and numbers > QUICKLY_FITTED and rows < 1.1 * stream.get("fitted", 0):
            return
        X, labels, weights = _joined(chunks)
        models = []
        parameters: list[float | None] = []
        for codes in labels:
            table = self._table(X, codes, weights, named, standardise=bool(self.standardise))
            seed, threads = _whole("seed", self.seed, 0, 2**64 - 1), _threads(self.threads)
            text, point = _engine.fit(table, self._names(X), None, None, None, seed, threads, False, None, None)
            coef, intercept = table.raw_weights(point)
            models.append((coef.reshape(len(intercept), -1), intercept))
            outcome = json.loads(text)
            stream["method"] = outcome["method"]
            parameters.append(outcome["parameter"])
        stream["model"] = _stacked(models)
        stream["chunks"], stream["fitted"] = [(X, labels, weights)], rows
        if is_enough:
            del stream["chunks"]
            stream.update(self._begun(table, X, labels, named[0]), parameters=parameters)

    def _begun(self, table: _engine.Native, X: Any, labels: list[Vector], loss: str) -> dict[str, Any]:
        """What a stream has to know of the rows before it: the scaling of the columns, and how long a first step may be."""
        columns = X.shape[1]
        shift, scale = table.scaling() or (np.zeros(columns), np.ones(columns))
        # A column that has not varied yet counts for nothing in a fit, but may in rows to come.
        scale = np.where(scale < 1e300, scale, np.maximum(1.0, np.abs(shift)))
        if sparse.issparse(X):
            # Zeros stay zeros.
            shift, scale = np.zeros(columns), np.hypot(shift, scale)
        size = 1.0
        if not self.standardise:
            size = float(np.linalg.norm(X.data if sparse.issparse(X) else X.reshape(-1, order="A"))) / (X.shape[0] * columns) ** 0.5
        radii = [_radius(loss, size, codes) for codes in labels]
        rows = float(X.shape[0])
        begun = {"shift": shift, "scale": scale, "rows": rows, "sums": np.zeros(columns), "squares": np.full(columns, rows)}
        is_centred = bool(self.standardise and self.fit_intercept) and not sparse.issparse(X)
        return {**begun, "radii": radii, "states": [None] * len(labels), "is_centred": is_centred}

    def _pass(self, stream: dict[str, Any], X: Any, labels: list[Vector], weights: Vector | None, named: tuple[str, float | None, int]) -> str | None:
        """One pass over a chunk of rows; why it ended early, if it did."""
        scaled = self._scaled(stream, X)
        shift, scale = stream["shift"], stream["scale"]
        outputs = named[2] if named[0] == "multinomial" else 1
        stream["states"] = list(stream["states"])
        models, ended = [], None
        for place, codes in enumerate(labels):
            # The scale that the first rows had, where none was given.
            named = named[0], stream.get("parameters", {place: named[1]})[place], named[2]
            table = self._table(scaled, codes, weights, named, standardise=False)
            start = self._stream_start(stream, place, outputs)
            state, point, stop = _engine.stream(table, stream["states"][place], start, stream["radii"][place])
            stream["states"][place] = state
            ended = stop or ended
            coef, intercept = table.raw_weights(point)
            coef = coef.reshape(outputs, -1) / scale
            models.append((coef, intercept - coef @ shift if self.fit_intercept else intercept))
        stream["model"], stream["method"] = _stacked(models), "dog"
        return ended

    def _scaled(self, stream: dict[str, Any], X: Any) -> Any:
        """A chunk with scaled columns. Where a column turns out to be much wider than it was, it is scaled anew, and the stream begins anew at its model."""
        scaled, sums, squares = _moments(X, stream["shift"], stream["scale"])
        rows, sums, squares = stream["rows"] + X.shape[0], stream["sums"] + sums, stream["squares"] + squares
        wide = (squares > WIDER**2 * rows) & np.isfinite(squares)
        if self.standardise and wide.any():
            moved = np.where(wide & stream["is_centred"], sums / rows, 0.0)
            # A mean far from all it is the mean of leaves no spread but rounding.
            spread = np.where(wide, np.sqrt(np.maximum(squares / rows - moved**2, 1e-12 * squares / rows)), 1.0)
            squares = (squares - 2 * moved * sums + rows * moved**2) / spread**2
            sums = (sums - rows * moved) / spread
            # A weight that was found where its column hardly varied says nothing about rows where it does; in the mean of the former the intercept has its part.
            coef, intercept = stream["model"]
            known = np.where(spread < 10 * WIDER, coef, 0.0)
            if self.fit_intercept:
                intercept = intercept + (coef - known) @ stream["shift"]
            stream["model"] = known, intercept
            stream["shift"], stream["scale"] = stream["shift"] + moved * stream["scale"], stream["scale"] * spread
            stream["states"] = [None] * len(stream["states"])
            scaled, _, _ = _moments(X, stream["shift"], stream["scale"])
        stream["rows"], stream["sums"], stream["squares"] = rows, sums, squares
        return scaled

    def _stream_start(self, stream: dict[str, Any], place: int, outputs: int) -> Vector:
        """The model so far, in terms of scaled columns."""
        coef, intercept = (part[place * outputs : (place + 1) * outputs] for part in stream["model"])
        scaled = coef * stream["scale"]
        if self.fit_intercept:
            scaled = np.column_stack([scaled, intercept + coef @ stream["shift"]])
        return np.ascontiguousarray(scaled.reshape(-1), np.float64)

    def _rows(self, X: Any, **more: Any) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", **more)


def _streams(model: _Linear) -> bool:
    if model.l1 != 0 or model.elastic_net is not None or model.positive or model.bounds is not None:
        raise AttributeError("partial_fit knows no l1 and no bounds; fit does")
    return True


class PastaRegressor(RegressorMixin, _Linear):  # type: ignore[misc]
    """A linear model for numbers, fitted until an exact pass over all rows finds the gradient small enough. No step size, no epochs.

    It is what ``pasta fit`` does: same data, same seed, same bits. C-contiguous arrays and CSR matrices in double or single precision are not copied;
    do not write to them while `fit` runs.

    loss
        least-squares, huber (`delta`), absolute, quantile (`level`), cauchy, welsch or tukey (`scale`), poisson, phase-retrieval. Unless `delta` or `scale`
        is given, it follows the residuals of an absolute fit, so that labels in other units make the same model.
    penalty
        l of the term l/2 |w|^2, on the weights of standardised columns (unless ``standardise=False``).
    l1
        l of the term l |w|_1 (lasso), likewise. It makes weights exactly 0. scikit-learn's ``Lasso(alpha=l)`` on standardised columns minimises the same function.
    elastic_net
        The share of `penalty` that |w|_1 has; |w|^2/2 has the rest, as with `l1_ratio` in ``ElasticNet(alpha=penalty)``.
    positive, bounds
        ``positive=True`` keeps weights at 0 or above. `bounds` is a pair (lower, upper) for all weights, or one for each column, with None for no bound, or
        SciPy's ``Bounds``. They are about `coef_`, whatever the scale of the columns. With l1 or bounds the loss has to be smooth and convex, `target` is one for
        ``certificate_.gap``, a bound on how far the objective is above its least value, where there is one, and otherwise for |x - prox(x - grad f)|.
    target
        The gradient that is small enough; a millionth of that at the start unless given.
    budget
        The most rows that may be read, each as often as it is read; 2000 passes, or more over a small table, unless given.
    method
        None takes the quickest way that is known for the table, "exact" second-order steps (for smooth convex losses), "auto" the method of
        :func:`pasta_opt.minimize`; or one of :mod:`pasta_opt.methods`. `method_` says which ran.
    seed, threads
        As in :func:`pasta_opt.minimize`.
    std_errors
        None for none; "classical" (from second derivatives), or the sandwiches "hc0" and "hc1". `summary_` then has the coefficients with standard errors, intervals and p values, under
        the names that ``pasta fit --json`` has for them, and `summary()` shows them. With a penalty, kinks or no unique minimiser there are none, and `summary_.omitted` says why.

    After `fit`: `coef_`, `intercept_`, `method_`, `n_iter_` (rounds), `passes_`, `stop_`, and `certificate_` with `verdict`, `gradient`, `target`, `objective`; `left_out_`,
    the columns whose weights the rows do not decide and which are 0 (a UserWarning names them); `deviation_`, the standard deviation of the residuals that a loss without a given
    `delta` or `scale` took its scale from. An end
    other than certified, or planned by a method with `steps`, is a ConvergenceWarning; so is a loss that has no minimiser. `partial_fit` keeps
    the first rows, 1,000 or 20 for each column, and fits them together; then it makes one pass over each chunk with steps that need no size (DoG, averaged). It
    certifies nothing.

    >>> import numpy as np, pasta_opt
    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> model = pasta_opt.PastaRegressor().fit(X, X @ [1.0, -2.0] + 3)
    >>> model.certificate_.verdict, bool(np.allclose(model.coef_, [1, -2], atol=1e-3))
    ('certified', True)
    """

    _usual = REGRESSION

    def __init__(
        self,
        loss: str = "least-squares",
        *,
        delta: float | None = None,
        level: float | None = None,
        scale: float | None = None,
        penalty: float = 0.0,
        l1: float = 0.0,
        elastic_net: float | None = None,
        positive: bool = False,
        bounds: Any = None,
        fit_intercept: bool = True,
        standardise: bool = True,
        target: float | str | None = None,
        budget: float | None = None,
        method: str | methods.Method | None = None,
        seed: int = 1,
        threads: int | None = None,
        std_errors: str | None = None,
    ) -> None:
        super().__init__(
            loss,
            delta=delta,
            level=level,
            scale=scale,
            penalty=penalty,
            l1=l1,
            elastic_net=elastic_net,
            positive=positive,
            bounds=bounds,
            fit_intercept=fit_intercept,
            standardise=standardise,
            target=target,
            budget=budget,
            method=method,
            seed=seed,
            threads=threads,
            std_errors=std_errors,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PastaRegressor:
        """Fits the model."""
        X, y = self._rows(X, y=y, y_numeric=True)
        labels = np.ascontiguousarray(y, np.float64)
        coef, intercept, outcome = self._run(X, labels, self._weights(sample_weight, X), self._named())
        self.coef_, self.intercept_ = coef[0].astype(X.dtype, copy=False), float(intercept[0])
        self._ends([outcome])
        if outcome.has_no_minimiser and outcome.penalty > 0:
            _endless("all labels ask for the same", "intercept and scores", "a constant needs no fit")
        elif outcome.has_no_minimiser:
            _endless("the labels are zero wherever some columns are not", "some weights")
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator,unused-ignore]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> PastaRegressor:
        """Learns from a chunk of rows, from where the last call, or a fit, ended."""
        X, y = self._rows(X, y=y, y_numeric=True, reset=not hasattr(self, "coef_"))
        labels = np.ascontiguousarray(y, np.float64)
        coef, intercept = self._learn(X, [labels], self._weights(sample_weight, X), self._named())
        self.coef_, self.intercept_ = coef[0], float(intercept[0])
        return self

    def predict(self, X: Any) -> Vector:
        """What is expected for each row: the score, exp of it for poisson, its square for phase-retrieval."""
        check_is_fitted(self)
        scores: Vector = np.asarray(safe_sparse_dot(self._rows(X, reset=False), self.coef_, dense_output=True)) + self.intercept_
        if self.loss == "poisson":
            return np.exp(scores)
        return scores**2 if self.loss == "phase-retrieval" else scores


def _ends(bounds: Any, columns: int) -> tuple[list[float], list[float]]:
    """The least and the most that weights may be: a pair for all of them, or one for each, with None for no bound; or an object with ``lb`` and ``ub``, as SciPy's."""
    if bounds is None:
        return [], []
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        pairs: list[Any] = list(zip(*(np.broadcast_to(np.asarray(end, np.float64), (columns,)).tolist() for end in (bounds.lb, bounds.ub)), strict=True))
    else:
        given = list(bounds)
        is_one = len(given) == 2 and all(end is None or np.ndim(end) == 0 for end in given)
        pairs = [given] if is_one else [list(pair) for pair in given]
        if not is_one and (len(pairs) != columns or any(len(pair) != 2 for pair in pairs)):
            raise ValueError(f"bounds must be a pair (lower, upper), or {columns} of them, one for each column, but has {len(pairs)} parts")
    lower = [-np.inf if low is None else _number("a bound", low) for low, _ in pairs]
    upper = [np.inf if high is None else _number("a bound", high) for _, high in pairs]
    return lower, upper


def _radius(loss: str, size: float, labels: Vector) -> float:
    """A hundredth of the size that weights have, by the spread of the labels and the size of the numbers in the columns: the first step of a stream. Steps grow
    by themselves, but slowly."""
    spread = 1.0
    if _LOSSES[loss][0] == "real":
        # Some thousands say enough, and a fit of many rows has no memory to spare.
        some = labels[:: 1 + len(labels) // 10_000]
        spread = float(some.std()) or float(np.abs(some).max()) or 1.0
        spread = spread**0.5 if loss == "phase-retrieval" else spread
    radius = 0.01 * spread / size if size > 0 else 0.01 * spread
    return min(max(radius, 1e-100), 1e100)


def _joined(chunks: list[tuple[Any, list[Vector], Vector]]) -> tuple[Any, list[Vector], Vector]:
    """Chunks as one: sparse if any of them is."""
    parts = [X for X, _, _ in chunks]
    if len(parts) == 1:
        return chunks[0]
    X = sparse.vstack(parts, format="csr") if any(sparse.issparse(part) for part in parts) else np.vstack(parts)
    labels = [np.concatenate(codes) for codes in zip(*(codes for _, codes, _ in chunks), strict=True)]
    return X, labels, np.concatenate([weights for _, _, weights in chunks])


def _moments(X: Any, shift: Vector, scale: Vector) -> tuple[Any, Vector, Vector]:
    """Scaled columns, their sums and the sums of their squares."""
    if sparse.issparse(X) and not shift.any():
        scaled = (X @ sparse.diags(1.0 / scale)).tocsr()
        sums, squares = (np.asarray(part.sum(axis=0), np.float64).reshape(-1) for part in (scaled, scaled.multiply(scaled)))
        return scaled, sums, squares
    dense = X.toarray() if sparse.issparse(X) else X
    scaled = np.ascontiguousarray((dense - shift) / scale, np.float64)
    return scaled, scaled.sum(axis=0), (scaled**2).sum(axis=0)


def _stacked(models: list[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    """Weights in rows, and intercepts, of several models."""
    return np.vstack([coef for coef, _ in models]), np.concatenate([intercept for _, intercept in models])


def _endless(why: str, what: str, mend: str = "penalty=1e-3, say, makes them finite", level: int = 3) -> None:
    """Warns of a loss without a minimiser, in the words of the program."""
    words = f"{why}, so the loss has no minimiser: it falls for ever as {what} grow; {mend}"
    warnings.warn(words, ConvergenceWarning, stacklevel=level)


def _table(summary: SimpleNamespace, classes: Any) -> str:
    """Coefficients in lines."""
    law = getattr(summary, "law", None)
    letter = f"t on {summary.degrees:g} degrees of freedom" if law == "student" else "z"
    rows = [["coefficient", "estimate", "std. error", "95 % interval", "t" if law == "student" else "z", "p"]]
    for one in summary.coefficients:
        name = one.name if getattr(one, "class", None) is None or classes is None else f"{_plain(classes[getattr(one, 'class')])}: {one.name}"
        if one.std_error is None:
            rows.append([name, f"{one.estimate:.5g}", "", "", "", ""])
        else:
            low, high = one.interval
            p = "" if one.p_value is None else f"{one.p_value:.2g}"
            value = "" if one.statistic is None else f"{one.statistic:.3g}"
            rows.append([name, f"{one.estimate:.5g}", f"{one.std_error:.4g}", f"{low:.4g} .. {high:.4g}", value, p])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    said = f"std. errors: {summary.std_errors}; {letter}" if summary.omitted is None else f"no std. errors: {summary.omitted}"
    explained = summary.explained
    parts = [f"{words} {value:.6g}" for words, value in [("deviance", explained.deviance), ("null deviance", explained.null_deviance), ("AIC", explained.aic)] if value is not None]
    return "\n".join([*lines, said, "; ".join(parts)])


def _plain(label: Any) -> Any:
    """A label as people write it."""
    return label.item() if isinstance(label, np.generic) else label


def _has_chances(model: PastaClassifier) -> bool:
    if model.loss not in ("logistic", "multinomial"):
        raise AttributeError(f"the {model.loss} loss has no probabilities; logistic and multinomial do")
    return True


class PastaClassifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    """A linear model for classes, fitted until an exact pass over all rows finds the gradient small enough. No step size, no epochs.

    loss
        logistic (of more than two classes: multinomial), multinomial, squared-hinge, hinge or sigmoid; the last three tell each class from the rest if
        there are more than two.
    penalty
        As in :class:`PastaRegressor`, but None unless given: no penalty, or 1e-4 where the loss has no minimiser without one, as for classes that can be separated. `penalty_` says
        which. It is what ``pasta fit`` does. `partial_fit`, which cannot begin again, has 1e-4 then.

    class_weight
        None, "balanced" (all classes weigh the same), or a dictionary of weights, as in scikit-learn; `partial_fit` has none.

    Everything else is as in :class:`PastaRegressor`. `partial_fit` needs `classes` in its first call. With one class against the rest, `certificate_` and `stop_`
    are lists.

    >>> import numpy as np, pasta_opt
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = pasta_opt.PastaClassifier().fit(X, ["no", "no", "yes", "yes"])
    >>> [str(name) for name in model.predict([[-3.0], [3.0]])], model.certificate_.verdict
    (['no', 'yes'], 'certified')
    """

    _usual = CLASSIFICATION

    def __init__(
        self,
        loss: str = "logistic",
        *,
        penalty: float | None = None,
        l1: float = 0.0,
        elastic_net: float | None = None,
        positive: bool = False,
        bounds: Any = None,
        fit_intercept: bool = True,
        standardise: bool = True,
        target: float | str | None = None,
        budget: float | None = None,
        method: str | methods.Method | None = None,
        seed: int = 1,
        threads: int | None = None,
        std_errors: str | None = None,
        class_weight: str | dict[Any, float] | None = None,
    ) -> None:
        self.class_weight = class_weight
        super().__init__(
            loss,
            delta=None,
            level=None,
            scale=None,
            penalty=penalty,
            l1=l1,
            elastic_net=elastic_net,
            positive=positive,
            bounds=bounds,
            fit_intercept=fit_intercept,
            standardise=standardise,
            target=target,
            budget=budget,
            method=method,
            seed=seed,
            threads=threads,
            std_errors=std_errors,
        )

    def _may_penalise(self) -> bool:
        return self.penalty is None

    def _rounds(self, rounds: list[int]) -> Any:
        return np.array(rounds, np.int32)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The parameters of this class: a loss for classes has none of its own."""
        return [name for name in super()._get_param_names() if name not in ("delta", "level", "scale")]

    def _labels(self, y: Any) -> tuple[list[Vector], tuple[str, float | None, int]]:
        """What the engine sees: one vector of labels, or one for each class against the rest."""
        codes = np.searchsorted(self.classes_, y).astype(np.float64)
        count = len(self.classes_)
        name, parameter, _ = self._named()
        if name == "logistic" and count > 2:
            name = "multinomial"
        elif name == "multinomial" and count == 2 and (self.positive or self.bounds is not None):
            raise ValueError("of two classes the multinomial loss has two scores, and bounds would be about each; take the logistic loss")
        if name == "multinomial" or count == 2:
            return [codes], (name, parameter, count)
        return [(codes == place).astype(np.float64) for place in range(count)], (name, parameter, 2)

    def _all_have_weight(self, y: Any, weights: Vector) -> None:
        """Refuses, or warns of, classes whose rows do not count."""
        left = np.isin(self.classes_, y[weights > 0])
        if left.sum() < 2:
            raise ValueError(f"there is nothing to tell apart: the rows with a positive weight have one class, {_plain(self.classes_[left][0])!r}")
        if not left.all():
            _endless(f"no row of the class {_plain(self.classes_[~left][0])!r} has a positive weight", "the intercepts", "leave it out", 4)

    def _keep(self, coef: Vector, intercept: Vector) -> None:
        if len(self.classes_) == 2 and len(coef) == 2:
            # Of two scores only the difference matters.
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        elif self.loss in ("logistic", "multinomial") and len(coef) > 2:
            # What is added to all scores changes no probability; with mean 0 they are unique. Weights that are 0 or bounded stay as they are.
            if self._penalties(self.n_features_in_) is None:
                coef = coef - coef.mean(axis=0)
            intercept = intercept - intercept.mean()
        self.coef_, self.intercept_ = coef, intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PastaClassifier:
        """Fits the model."""
        X, y = self._rows(X, y=y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"there is nothing to tell apart: the labels have one class, {_plain(self.classes_[0])!r}")
        labels, named = self._labels(y)
        weights = self._weights(sample_weight, X)
        if self.class_weight is not None:
            of_classes = compute_sample_weight(self.class_weight, y)
            weights = of_classes if weights is None else weights * of_classes
        if weights is not None:
            self._all_have_weight(y, weights)
        fits = [self._run(X, codes, weights, named) for codes in labels]
        self._keep(np.vstack([coef for coef, _, _ in fits]), np.concatenate([intercept for _, intercept, _ in fits]))
        # Single precision stays single, as in other estimators.
        self.coef_, self.intercept_ = (part.astype(X.dtype, copy=False) for part in (self.coef_, self.intercept_))
        self._ends([outcome for _, _, outcome in fits])
        if self.penalty == 0 and named[0] in ("logistic", "multinomial", "sigmoid"):
            if (self.predict(X) == y).all():
                _endless("the classes can be separated", "the weights")
            elif any(outcome.has_no_minimiser for _, _, outcome in fits):
                _endless("some rows can be told apart with certainty (quasi-separation)", "some weights")
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator,unused-ignore]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PastaClassifier:
        """Learns from a chunk of rows, from where the last call, or a fit, ended."""
        is_first = not hasattr(self, "coef_")
        X, y = self._rows(X, y=y, reset=is_first)
        check_classification_targets(y)
        if is_first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError("there is nothing to tell apart: classes must name at least two")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not the same as on the first call to partial_fit, which was {self.classes_.tolist()}")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"the label {_plain(unknown[0])!r} is none of the classes {self.classes_.tolist()}")
        labels, named = self._labels(y)
        self._without = 1e-4
        try:
            self._keep(*self._learn(X, labels, self._weights(sample_weight, X), named))
        finally:
            del self._without
        return self

    def decision_function(self, X: Any) -> Vector:
        """The scores: one for each row if there are two classes, otherwise one for each class."""
        check_is_fitted(self)
        scores: Vector = np.asarray(safe_sparse_dot(self._rows(X, reset=False), self.coef_.T, dense_output=True)) + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    @available_if(_has_chances)  # type: ignore[untyped-decorator,unused-ignore]
    def predict_proba(self, X: Any) -> Vector:
        """The probability of each class."""
        chances: Vector = np.exp(self.predict_log_proba(X))
        return chances

    @available_if(_has_chances)  # type: ignore[untyped-decorator,unused-ignore]
    def predict_log_proba(self, X: Any) -> Vector:
        """The logarithms of the probabilities."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            both: Vector = -np.logaddexp(0.0, np.column_stack([scores, -scores]))
            return both
        shifted = scores - scores.max(axis=1, keepdims=True)
        logs: Vector = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return logs
