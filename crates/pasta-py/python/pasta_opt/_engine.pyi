from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str

_Columns = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]
_Ended = tuple[str, NDArray[np.float64], _Columns]
_Callback = Callable[[int, int, int, float, NDArray[np.float64]], object]

class _Method(TypedDict):
    name: str
    about: str
    has_steps: bool
    settings: list[tuple[str, str, float | None, bool]]

def minimize(
    leaves: Any,
    x0: NDArray[np.float64],
    method: str,
    settings: dict[str, float],
    steps: int,
    batch: int,
    rule: tuple[float, float, float, tuple[str, list[float]]] | None,
    budget: int | None,
    seed: int,
    threads: int,
    callback: _Callback | None,
    checkpoint: str | None,
) -> _Ended: ...
def resume(
    leaves: Any, dim: int, budget: int | None, threads: int, callback: _Callback | None, checkpoint: str
) -> _Ended: ...
def certify(
    leaves: Any,
    x: NDArray[np.float64],
    rule: tuple[float, float, float, tuple[str, list[float]]],
    budget: int | None,
    seed: int,
    threads: int,
) -> str: ...
def calibrate(leaves: Any, x0: NDArray[np.float64], budget: int, seed: int, threads: int) -> str: ...
def lower_bound(smoothness: float, mean_square: bool, gap: float, growth: float, floor: float, target: float) -> str: ...
def stored_dimension(checkpoint: str) -> int: ...
def methods() -> list[_Method]: ...
def table(rows: Sequence[tuple[str, str]], width: int) -> str: ...
def program(arguments: Sequence[str]) -> int: ...
