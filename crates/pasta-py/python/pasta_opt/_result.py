"""What a run came to."""

from __future__ import annotations

import html
import json
import math
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine

#: The columns of a trace.
TRACE = np.dtype([("step", np.uint64), ("samples", np.uint64), ("evaluations", np.uint64), ("distance", np.float64)])

#: The checkpoint in the folder of a run.
CHECKPOINT = "checkpoint.pasta"


@dataclass(frozen=True)
class Stop:
    """Why a run ended, and so what its point is worth. `kind` is one of planned-end, out-of-budget, asked, settled, certified, void, hopeless,
    diverged, not-finite, unbounded, and interrupted, after :meth:`AskTell.stop`."""

    kind: str
    meaning: str


@dataclass(frozen=True)
class Ledger:
    """What was asked of the oracle: in all, and by what it was for."""

    samples: int
    evaluations: int
    by_role: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Answers that were NaN or infinite; with ``on_nan="skip"``, the samples that were left out.
    not_finite: int = 0
    #: Questions that the run waited for, where they were given a price (``round_cost``).
    rounds: int | None = None


@dataclass(frozen=True)
class Certificate:
    """What fresh samples say about the gradient at the point.

    `bound` is on the norm of the gradient or, where there is a term, of the gradient mapping with `gamma`; it holds with probability 1 - `delta`, under the assumption that `statement` names.
    """

    verdict: str
    #: What is bounded: "gradient", "gradient-mapping" or "moreau".
    of: str
    bound: float | None
    target: float
    delta: float
    samples: int
    statement: str
    attempts: int
    words: str
    #: Where there is a term: gamma of the gradient mapping; None without.
    gamma: float | None = None
    #: Where it is not certified, about how many samples would do at this point; None where none would, or where that is not known.
    needed: int | None = None
    #: What is missing, in a sentence; empty where it is certified.
    outlook: str = ""

    @property
    def is_certified(self) -> bool:
        """Whether the bound is at most the target."""
        return self.verdict == "certified"

    def __str__(self) -> str:
        said = "certified" if self.is_certified else f"not certified ({self.words})"
        return f"{said}: {self.statement}" + (f"\n{self.outlook}" if self.outlook else "")


@dataclass(frozen=True)
class Forecast:
    """What a run said about the samples that it would take, at the first moment at which it could tell."""

    low: float
    middle: float
    high: float
    #: The samples that the run had drawn when it said so.
    after: int
    #: The share of runs of such methods in which ranges like this held, where that was tried (docs/forecast.md).
    share: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The end of a run. Prints as a table."""

    #: The point that the run hands out.
    x: NDArray[np.float64]
    stop: Stop
    certificate: Certificate | None
    #: Whether a certificate was asked for.
    asked: bool
    ledger: Ledger
    #: An array with the columns of `TRACE`, for milestones: all steps up to 128, then 64 for every doubling.
    trace: NDArray[np.void]
    method: str
    problem: str
    seed: int
    steps: int
    #: From the start to the last iterate.
    distance: float
    #: What a theorem promises for x, after the planned end of a recipe.
    promise: str | None
    #: What the run said about its cost when it could first tell; None if it never could, which `forecast_silent` explains.
    forecast: Forecast | None
    forecast_silent: str | None
    #: Where the target was a share of the gradient at the start: `share`, `gradient`, `error`, `samples` and `target`.
    of_start: SimpleNamespace | None
    #: What is printed, row by row: the verdict, on what it rests, the point, its cost. :meth:`details` has the rest.
    answer: list[tuple[str, str]]
    _details: list[tuple[str, str]]
    #: x in the form in which the start was given: a pytree for an oracle of JAX, and x itself elsewhere.
    params: Any
    #: All that is needed to go on; see :meth:`save`.
    checkpoint: bytes
    #: The report as JSON, with the keys of the program's result.json (docs/formats.md) but for the point; :func:`pasta_opt.verify` reads it.
    report: str
    #: What was minimised with f, in words, where there were bounds or a term.
    term: str | None = None

    @property
    def success(self) -> bool:
        """Whether the run came to its end: with a target, that it was certified; without one, that it ended as planned or settled."""
        if self.asked:
            return self.certificate is not None and self.certificate.is_certified
        return self.stop.kind in ("planned-end", "settled")

    @property
    def message(self) -> str:
        """Why the run ended: ``stop.meaning``, under SciPy's name."""
        return self.stop.meaning

    @property
    def nit(self) -> int:
        """Steps, under SciPy's name."""
        return self.steps

    @property
    def nfev(self) -> int:
        """Evaluations of samples, all roles together, under SciPy's name."""
        return self.ledger.evaluations

    def plot(self, axes: Any = None) -> Any:
        """Draws the distance from the start over the samples with matplotlib, and returns the axes."""
        if axes is None:
            import matplotlib.pyplot as plt  # type: ignore[import-untyped,import-not-found,unused-ignore]

            axes = plt.figure().add_subplot()
        axes.plot(self.trace["samples"], self.trace["distance"], marker=".")
        axes.set(xlabel="samples", ylabel="distance from x0", title=f"{self.method}: {self.stop.kind}")
        return axes

    def __repr__(self) -> str:
        return _table(self.answer)

    def details(self) -> str:
        """All that there is to say about the run, as a table."""
        return _table(self.answer + self._details)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(a)}</th><td style="text-align:left">{html.escape(b)}</td></tr>'
            for a, b in self.answer
        )
        return f"<table>{rows}</table>{self._curve()}"

    def _curve(self) -> str:
        """The distance from the start over the samples, as a drawing."""
        samples, distance = self.trace["samples"].astype(float), self.trace["distance"]
        if len(samples) < 2 or not np.isfinite(distance).all():
            return ""
        width, height, left, top = 420.0, 120.0, 60.0, 10.0
        most, far = samples[-1] or 1.0, float(distance.max()) or 1.0
        points = " ".join(f"{left + width * a / most:.1f},{top + height * (1 - b / far):.1f}" for a, b in zip(samples, distance, strict=True))
        label = '<text x="{:.0f}" y="{:.0f}" text-anchor="{}">{}</text>'.format
        words = [
            label(left - 6, top + 10, "end", f"{far:.3g}"),
            label(left - 6, top + height, "end", "0"),
            label(left, top + height + 16, "start", "0"),
            label(left + width, top + height + 16, "end", f"{most:,.0f} samples"),
            label(left + width / 2, top + height + 16, "middle", "distance from x0"),
        ]
        return (
            f'<svg viewBox="0 0 {left + width + 10:.0f} {top + height + 24:.0f}" width="{left + width + 10:.0f}" role="img" '
            'font-family="sans-serif" font-size="11" fill="currentColor">'
            f'<title>distance from x0 over samples</title><path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="currentColor"/>'
            f'<polyline points="{points}" fill="none" stroke="#3069b0" stroke-width="1.5"/>{"".join(words)}</svg>'
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the run to a folder, from which :func:`pasta_opt.resume` goes on if it had not ended as planned."""
        path = Path(folder) / CHECKPOINT
        if path.exists():
            raise FileExistsError(f"{folder} holds a run; give another folder, or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.checkpoint)

    def to_pandas(self) -> Any:
        """The trace as a pandas DataFrame; needs pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self.trace)


def _table(rows: list[tuple[str, str]]) -> str:
    return _engine.rows(rows, shutil.get_terminal_size((100, 24)).columns)


def certificate_of(data: dict[str, Any]) -> Certificate:
    """A certificate, from the engine's JSON."""
    needed, outlook = _outlook(data)
    fields = {name: data[name] for name in Certificate.__dataclass_fields__ if name in data}
    return Certificate(**fields, needed=needed, outlook=outlook)


#: A certificate by kurtosis needs some samples whatever the target: so many times the kurtosis, as measured (docs/certificate.md).
_LEAST_OF_KURTOSIS = 45.0
#: What looks at the variance and the tracks cost, over a single track with the variance known, as measured (docs/certificate.md).
_OVERHEAD = 1.35


def _outlook(data: dict[str, Any]) -> tuple[int | None, str]:
    """About how many samples a certificate that failed would have needed at its point, and a sentence; a plan, not a promise."""
    made, target, bound = data.get("made"), data["target"], data["bound"]
    if data["verdict"] not in ("above", "out-of-budget") or made is None or data["of"] != "gradient":
        return None, ""
    begun = "no bound" if bound is None else f"bound {bound:.2g}"
    begun += f" with {data['samples']:,} samples"
    each, count = made["samples_each"], made["sub_batches"]
    if count < 2:
        needed = _rounded(each * made["planned"])
        return needed, f"{begun}; {target:.2g} needs about {needed:,}"
    error = made["scatter"] / (count * (count - 1.0))
    gradient = math.sqrt(max(0.0, made["mean"] ** 2 - error))
    if data["verdict"] == "above" or gradient >= 0.95 * target:
        return None, f"{begun}; the gradient itself seems to be about {gradient:.2g}, which no number of samples brings below {target:.2g}: run on"
    variance, delta = each * made["scatter"] / (count - 1.0), made["claim"]["delta"]
    # A certificate is planned for a gradient of about half of its target, and gains little from a smaller one.
    margin = min(target - gradient, target / 2)
    wanted = _OVERHEAD * 2.0 * variance * math.log(1.0 / (0.64 * delta)) / margin**2
    kurtosis = made["claim"]["basis"]
    if isinstance(kurtosis, dict) and "kurtosis" in kurtosis:
        wanted = max(wanted, _LEAST_OF_KURTOSIS * kurtosis["kurtosis"])
    needed = _rounded(wanted)
    return needed, f"{begun}; {target:.2g} needs about {needed:,} at this point"


def _rounded(samples: float) -> int:
    """Upwards, to two digits."""
    unit = 10 ** max(0, math.floor(math.log10(max(samples, 1.0))) - 1)
    return int(math.ceil(samples / unit) * unit)


def read(
    ended: tuple[str, NDArray[np.float64], tuple[NDArray[Any], ...], bytes],
    unflatten: Callable[[NDArray[np.float64]], Any] | None = None,
) -> Result:
    """A result, from what the engine returns."""
    text, x, columns, checkpoint = ended
    data = json.loads(text)
    if data["ledger"]["not_finite"]:
        warnings.warn(f"not all answers of the oracle were finite: {data['stop']['meaning']}", RuntimeWarning, stacklevel=3)
    trace = np.empty(len(columns[0]), TRACE)
    for name, column in zip(TRACE.names or (), columns, strict=True):
        trace[name] = column
    certificate = None if data["certificate"] is None else certificate_of(data["certificate"])
    promise, forecast = data["promise"], data["forecast"]
    return Result(
        x=x,
        stop=Stop(data["stop"]["kind"], data["stop"]["meaning"]),
        certificate=certificate,
        asked=data["asked"],
        ledger=Ledger(**data["ledger"]),
        trace=trace,
        method=data["method"],
        problem=data["problem"],
        seed=data["seed"],
        steps=data["steps"],
        distance=data["distance"],
        promise=promise["statement"] if promise is not None and promise["holds"] else None,
        forecast=None if forecast is None else Forecast(**{name: forecast[name] for name in Forecast.__dataclass_fields__}),
        forecast_silent=data["forecast_silent"],
        of_start=None if data["of_start"] is None else SimpleNamespace(**data["of_start"]),
        answer=[(label, text) for label, text in data["answer"]],
        _details=[(label, text) for label, text in data["details"]],
        params=x if unflatten is None else unflatten(x),
        checkpoint=checkpoint,
        report=text,
        term=data["term"],
    )
