"""Where a run stands, for callbacks and for a line on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Seconds between two lines.
BETWEEN = 0.1


@dataclass(frozen=True)
class Moment:
    """Where a run stands, for a callback. x is the last iterate."""

    step: int
    samples: int
    evaluations: int
    distance: float
    x: NDArray[np.float64]


Raw = Callable[[int, int, int, float, NDArray[np.float64]], object]


def shown(
    callback: Callable[[Moment], object] | None,
    progress: bool | Callable[[Moment], object] | None,
    budget: int | None,
) -> tuple[Raw | None, float]:
    """What the engine calls, and how many seconds apart: after every step if somebody wants every step."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Moment, but is {callback!r}")
    if progress is True:
        progress = Line(budget)
    if progress is None or progress is False:
        if callback is None:
            return None, 0.0
        return lambda *now: _stops(callback(Moment(*now))), 0.0
    if not callable(progress):
        raise TypeError(f"progress must be True, False or a function of a Moment, but is {progress!r}")
    show: Callable[[Moment], object] = progress
    if callback is None:
        # What a progress function returns does not stop a run.
        return lambda *now: bool(show(Moment(*now))) and False, BETWEEN
    last = -BETWEEN

    def both(*now: object) -> object:
        nonlocal last
        moment = Moment(*now)  # type: ignore[arg-type]
        if time.monotonic() - last >= BETWEEN:
            last = time.monotonic()
            show(moment)
        return _stops(callback(moment))

    return both, 0.0


def _stops(returned: object) -> bool:
    """Whether what a callback returned stops the run."""
    try:
        return bool(returned)
    except ValueError:
        words = "callback stops the run by returning something true, and lets it go on by returning None or False"
        raise TypeError(f"{words}, but it returned {returned!r}, which is neither") from None


class Line:
    """One line on stderr, written over and over on a terminal."""

    def __init__(self, budget: int | None) -> None:
        self._budget = budget
        self._begun = time.monotonic()
        self._said = 0.0

    def __call__(self, moment: Moment) -> None:
        seconds = time.monotonic() - self._begun
        is_terminal = sys.stderr.isatty()
        # A file gets a line every ten seconds.
        if not is_terminal and seconds - self._said < 10:
            return
        self._said = seconds
        share = f" of {self._budget:,}" if self._budget else ""
        text = f"step {moment.step:,}, {moment.samples:,}{share} samples, {moment.distance:.4g} from x0, {seconds:.1f} s"
        print(f"\r\x1b[K{text}" if is_terminal else text, end="" if is_terminal else "\n", file=sys.stderr, flush=True)
