"""What can be given as ``workers=``, and how a function takes it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import Executor

    #: A number of processes, an executor, or a function that maps as the built-in `map` does.
    AnyWorkers = int | Executor | Callable[..., Iterable[Any]]

Function = TypeVar("Function", bound=Callable[..., Any])


def with_workers(function: Function) -> Function:
    """Has the keyword `workers` of a function, whose first argument is an oracle, make a pool that lives as long as the call."""

    @functools.wraps(function)
    def pooled(oracle: Any, *arguments: Any, workers: AnyWorkers | None = None, **keywords: Any) -> Any:
        if workers is None:
            return function(oracle, *arguments, **keywords)
        from ._pool import Pool

        with Pool(oracle, workers) as pool:
            return function(pool, *arguments, **keywords)

    return cast(Function, pooled)
