from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str

_Vector = NDArray[np.float64]
_Columns = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], _Vector]
_Ended = tuple[str, _Vector, _Columns, bytes]
_Callback = Callable[[int, int, int, float, _Vector], object]
_Rule = tuple[float, float, float, tuple[str, list[float]]]
_Leaf = tuple[list[_Vector], tuple[int, int], list[tuple[int, int, int, int]], int, bool, bool]

class _Method(TypedDict):
    name: str
    about: str
    has_steps: bool
    settings: list[tuple[str, str, float | None, bool]]

class Native:
    @property
    def dim(self) -> int: ...
    @property
    def identity(self) -> str: ...
    @property
    def words(self) -> str: ...
    @property
    def losses(self) -> bool: ...
    @property
    def is_table(self) -> bool: ...
    @property
    def start(self) -> _Vector: ...
    def raw_weights(self, x: _Vector) -> tuple[_Vector, _Vector]: ...
    def value(self, x: _Vector) -> float: ...
    def gradient(self, x: _Vector) -> _Vector: ...
    def stochastic_gradient(self, x: _Vector, z: float) -> _Vector: ...
    def mask(self, x: _Vector) -> _Vector: ...
    def progress(self, x: _Vector, threshold: float) -> int: ...
    def base_value(self, x: _Vector) -> float: ...
    def parameters(self) -> str: ...

class Asking:
    def __new__(
        cls,
        identity: str,
        x0: _Vector,
        losses: bool,
        block: int,
        batched: bool,
        method: str,
        settings: dict[str, float],
        steps: int,
        batch: int,
        rule: _Rule | None,
        budget: int | None,
        seed: int,
        check: bool,
        threads: int,
    ) -> Asking: ...
    def ask(self) -> list[_Leaf] | None: ...
    def tell(self, sums: list[_Vector]) -> None: ...
    def stop(self) -> None: ...
    def result(self) -> _Ended: ...

def minimize(
    leaves: Any,
    x0: _Vector,
    method: str,
    settings: dict[str, float],
    steps: int,
    batch: int,
    rule: _Rule | None,
    budget: int | None,
    seed: int,
    check: bool,
    pilot: int,
    threads: int,
    callback: _Callback | None,
    every: float,
    checkpoint: str | None,
) -> _Ended: ...
def resume(
    leaves: Any, budget: int | None, threads: int, callback: _Callback | None, every: float, checkpoint: str
) -> _Ended: ...
def certify(leaves: Any, x: _Vector, rule: _Rule, budget: int | None, seed: int, threads: int) -> str: ...
def calibrate(leaves: Any, x0: _Vector, budget: int, seed: int, threads: int) -> str: ...
def check(leaves: Any, x0: _Vector, seed: int, threads: int) -> str: ...
def forecast(
    leaves: Any,
    x0: _Vector,
    method: str,
    settings: dict[str, float],
    steps: int,
    batch: int,
    rule: _Rule,
    samples: int,
    seed: int,
    threads: int,
) -> str: ...
def compare(
    leaves: Any,
    x0: _Vector,
    methods: list[str],
    grid: bool,
    rule: _Rule | None,
    target: float | None,
    budget: int,
    seeds: int,
    seed: int,
    threads: int,
) -> str: ...
def plan(regime: str, flags: list[tuple[str, float]]) -> str: ...
def lower_bound(smoothness: float, mean_square: bool, gap: float, growth: float, floor: float, target: float) -> str: ...
def read_problem(file: str) -> Native: ...
def hard_instance(smoothness: float, mean_square: bool, gap: float, growth: float, floor: float, target: float) -> Native: ...
def table(
    numbers: NDArray[Any],
    shape: tuple[int, int],
    sparse: tuple[NDArray[np.uint64], NDArray[np.uint32]] | None,
    labels: _Vector,
    weights: _Vector | None,
    loss: tuple[str, float | None, int],
    intercept: bool,
    standardise: bool,
    degree: int,
    penalty: float,
    threads: int,
) -> Native: ...
def losses() -> list[tuple[str, str, str, str, tuple[str, float] | None]]: ...
def fit(
    table: Native,
    start: _Vector | None,
    method: str,
    settings: dict[str, float],
    steps: int,
    batch: int,
    target: float | None,
    budget: int | None,
    seed: int,
    threads: int,
) -> tuple[str, _Vector]: ...
def stream(table: Native, state: bytes | None, start: _Vector) -> tuple[bytes, _Vector, str | None]: ...
def stored_dimension(checkpoint: str) -> int: ...
def methods() -> list[_Method]: ...
def rows(rows: Sequence[tuple[str, str]], width: int) -> str: ...
def program(arguments: Sequence[str]) -> int: ...
