"""Modules of PyTorch, trained to a certificate.

:func:`minimize` reads the parameters of a module, minimises E loss over a dataset or a sampler, and writes them back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._minimize import minimize as _minimize
from ._oracle import Oracle, _a, _name_of
from ._result import Result

try:
    import torch  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.func import functional_call, grad_and_value  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.nn.modules.batchnorm import _BatchNorm  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(f"pasta_opt.torch needs PyTorch 2 or later (pip install 'pasta-opt[torch]'): {error}") from error

Vector = NDArray[np.float64]


def minimize(
    module: Any,
    loss: Callable[[Callable[..., Any], Any], Any],
    data: Any,
    *,
    collate: Callable[[list[Any]], Any] | None = None,
    block: int | None = None,
    name: str | None = None,
    **keywords: Any,
) -> Result:
    """Minimises the mean of a loss over the parameters of a module that require a gradient. Keywords are those of :func:`pasta_opt.minimize`.

    module
        A ``torch.nn.Module``. Its parameters are read at the beginning and written at the end, whatever the end is; if something is raised, it is left as
        it was. Buffers, such as the statistics of batch norm, are never changed.
    loss
        ``loss(model, batch)``: the *mean* loss of a batch, a tensor of one number. `model` is called like the module.
    data
        A dataset with ``len(data)`` and ``data[i]``, whose rows are drawn with replacement, or a function ``data(rng, n)`` that returns a batch of n samples
        drawn from a numpy Generator.
    collate
        Makes a batch of a list of rows; that of ``torch.utils.data`` unless given.

    The gradients are torch's own, so the check before a run rarely finds anything. "auto" and certificates ask for single samples, too, on which batch norm
    cannot train unless a sample has several values for each channel, as an image has: put it in eval mode, or take a method with batches and no target. Where batch norm trains, the gradient of a batch is not
    the mean over its samples, so that there is no check unless ``check=True`` is given. A run with an `output` folder has its checkpoint there, but :func:`pasta_opt.resume` cannot
    go on with it: the oracle is made here.

    Every batch is evaluated by ``torch.func`` at whichever points are asked for, with the same rows and, for dropout, the same seed of torch's generator, whose
    state is put back afterwards.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, but is {module!r}")
    free = {key: value for key, value in module.named_parameters() if value.requires_grad}
    if not free:
        raise ValueError("the module has no parameters that require a gradient")
    for key, parameter in free.items():
        if parameter.is_complex():
            raise TypeError(f"parameters must be real, but {key} has dtype {parameter.dtype}: make its real and imaginary parts parameters of their own")
    fixed = {key: value.detach() for key, value in module.named_parameters() if not value.requires_grad}
    batch_of = _batches(data, collate)
    shapes = [(key, value.shape, value.numel(), value.dtype, value.device) for key, value in free.items()]

    def tree(x: Vector) -> dict[str, Any]:
        parts, at = {}, 0
        for key, shape, count, dtype, device in shapes:
            parts[key] = torch.tensor(x[at : at + count], dtype=dtype, device=device).reshape(shape)
            at += count
        return parts

    def value(parameters: dict[str, Any], batch: Any) -> Any:
        # Copies of the buffers, so that none is changed.
        buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}

        def model(*arguments: Any, **named: Any) -> Any:
            return functional_call(module, {**parameters, **fixed, **buffers}, arguments, named)

        return loss(model, batch)

    differentiated = grad_and_value(value)
    trains_batch_norm = any(isinstance(part, _BatchNorm) and part.training for part in module.modules())

    def gradient(x: Vector, rng: np.random.Generator, n: int) -> tuple[float, Vector]:
        seed = int(rng.integers(0, 2**63))
        batch = batch_of(rng, n)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                parts, mean = differentiated(tree(x), batch)
            except ValueError as error:
                if n == 1 and trains_batch_norm:
                    raise ValueError(f"{error}: batch norm cannot train on one sample, and single ones are asked for; put it in eval mode, or take a method with batches") from error
                raise
        flat = torch.cat([parts[key].reshape(-1).to("cpu", torch.float64) for key, *_ in shapes])
        return n * float(mean), n * flat.numpy()

    start = torch.cat([value.detach().reshape(-1).to("cpu", torch.float64) for value in free.values()]).numpy()
    oracle = Oracle(gradient, batched=True, losses=True, block=block, name=name or f"{_name_of(loss)} of {type(module).__qualname__}")
    keywords.setdefault("check", not trains_batch_norm)
    result = _minimize(oracle, start, **keywords)
    with torch.no_grad():
        for key, part in tree(result.x).items():
            free[key].copy_(part)
    return result


def _batches(data: Any, collate: Callable[[list[Any]], Any] | None) -> Callable[[np.random.Generator, int], Any]:
    if isinstance(data, tuple | Mapping):
        raise TypeError(
            f"data must be a dataset, such as torch.utils.data.TensorDataset(X, Y) or a list of rows, or a function of (rng, n), but is {_a(data)}"
        )
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        from torch.utils.data import default_collate  # type: ignore[import-not-found,import-untyped,unused-ignore]

        size = len(data)
        if size == 0:
            raise ValueError("the dataset is empty")
        gather = collate or default_collate
        return lambda rng, n: gather([data[int(i)] for i in rng.integers(0, size, size=n)])
    if callable(data):
        sampler: Callable[[np.random.Generator, int], Any] = data
        return sampler
    raise TypeError(f"data must be a dataset with a length, or a function of (rng, n), but is {data!r}")
