"""What a run came to."""

from __future__ import annotations

import html
import json
import shutil
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine

#: The columns of a trace.
TRACE = np.dtype([("step", np.uint64), ("samples", np.uint64), ("evaluations", np.uint64), ("distance", np.float64)])

#: How many coordinates of the point a table shows.
SHOWN = 6


@dataclass(frozen=True)
class Stop:
    """Why a run ended, and so what its point is worth. `kind` is one of planned-end, out-of-budget, asked, settled, certified, diverged."""

    kind: str
    meaning: str


@dataclass(frozen=True)
class Ledger:
    """What was asked of the oracle: in all, and by what it was for."""

    samples: int
    evaluations: int
    by_role: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """What fresh samples say about the gradient at the point.

    `bound` is on the norm of the gradient; it holds with probability 1 - `delta`, under the assumption that `statement` names.
    """

    verdict: str
    bound: float | None
    target: float
    delta: float
    samples: int
    statement: str
    attempts: int
    words: str

    @property
    def is_certified(self) -> bool:
        """Whether the bound is at most the target."""
        return self.verdict == "certified"


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

    def rows(self) -> list[tuple[str, str]]:
        """The rows of the table."""
        head = ", ".join(f"{number:.6g}" for number in self.x[:SHOWN])
        dots = ", .." if len(self.x) > SHOWN else ""
        if self.certificate is not None:
            tried = "" if self.certificate.attempts == 1 else f", attempt {self.certificate.attempts}"
            certificate = f"{self.certificate.words}{tried} (target {self.certificate.target:g}): {self.certificate.statement}"
        else:
            certificate = "none: the run never looked good enough to try" if self.asked else "none was asked for (target=)"
        by_role = ", ".join(f"{role} {entry['samples']:,}" for role, entry in self.ledger.by_role.items())
        return [
            ("method", f"{self.method}, seed {self.seed}"),
            ("problem", self.problem),
            ("stop", f"{self.stop.kind}: {self.stop.meaning}"),
            ("x", f"({head}{dots})"),
            ("certificate", certificate),
            ("promise", self.promise or "none"),
            ("steps", f"{self.steps:,}"),
            ("samples", f"{self.ledger.samples:,} ({by_role})"),
            ("evaluations", f"{self.ledger.evaluations:,}"),
            ("distance from x0", f"{self.distance:.6g}"),
        ]

    def __repr__(self) -> str:
        return _engine.table(self.rows(), shutil.get_terminal_size((100, 24)).columns)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self.rows())
        return f"<table>{rows}</table>"

    def to_pandas(self) -> Any:
        """The trace as a pandas DataFrame; needs pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self.trace)


def certificate_of(data: dict[str, Any]) -> Certificate:
    """A certificate, from the engine's JSON."""
    return Certificate(**{name: data[name] for name in Certificate.__dataclass_fields__})


def read(ended: tuple[str, NDArray[np.float64], tuple[NDArray[Any], ...]], asked: bool) -> Result:
    """A result, from what the engine returns."""
    text, x, columns = ended
    data = json.loads(text)
    trace = np.empty(len(columns[0]), TRACE)
    for name, column in zip(TRACE.names or (), columns, strict=True):
        trace[name] = column
    certificate = None if data["certificate"] is None else certificate_of(data["certificate"])
    return Result(
        x=x,
        stop=Stop(**data["stop"]),
        certificate=certificate,
        asked=asked or certificate is not None,
        ledger=Ledger(**data["ledger"]),
        trace=trace,
        method=data["method"],
        problem=data["problem"],
        seed=data["seed"],
        steps=data["steps"],
        distance=data["distance"],
        promise=data["promise"],
    )
