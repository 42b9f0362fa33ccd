"""Modules of PyTorch, trained to a certificate.

:func:`minimize` reads the parameters of a module, minimises E loss over a dataset or a sampler, and writes them back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._minimize import minimize as _minimize
from ._oracle import Oracle, Structured, _a, _name_of
from ._result import Result

try:
    import torch  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.func import functional_call, grad_and_value  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.nn.modules.batchnorm import _BatchNorm  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(f"pasta_opt.torch needs PyTorch 2 or later (pip install 'pasta-opt[torch]'): {error}") from error

Vector = NDArray[np.float64]


class ModuleOracle(Structured):
    """What :func:`oracle` returns: the mean loss of a module as a function of its parameters, which are its point unless another is given."""

    def __init__(self, module: Any, loss: Any, data: Any, collate: Callable[[list[Any]], Any] | None, block: int | None, name: str | None) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, but is {module!r}")
        self._free = {key: value for key, value in module.named_parameters() if value.requires_grad}
        if not self._free:
            raise ValueError("the module has no parameters that require a gradient")
        for key, parameter in self._free.items():
            if parameter.is_complex():
                raise TypeError(f"parameters must be real, but {key} has dtype {parameter.dtype}: make its real and imaginary parts parameters of their own")
        fixed = {key: value.detach() for key, value in module.named_parameters() if not value.requires_grad}
        batch_of, mean_loss = _batches(data, collate), _of_batch(loss)
        self._shapes = [(key, value.shape, value.numel(), value.dtype, value.device) for key, value in self._free.items()]

        def value(parameters: dict[str, Any], batch: Any) -> Any:
            # Copies of the buffers, so that none is changed.
            buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}

            def model(*arguments: Any, **named: Any) -> Any:
                return functional_call(module, {**parameters, **fixed, **buffers}, arguments, named)

            return mean_loss(model, batch)

        differentiated = grad_and_value(value)
        #: Where batch norm trains, the gradient of a batch is not the mean over its samples.
        self.trains_batch_norm = any(isinstance(part, _BatchNorm) and part.training for part in module.modules())

        def gradient(x: Vector, rng: np.random.Generator, n: int) -> tuple[float, Vector]:
            seed = int(rng.integers(0, 2**63))
            batch = batch_of(rng, n)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                try:
                    parts, mean = differentiated(self._tree(x), batch)
                except ValueError as error:
                    if n == 1 and self.trains_batch_norm:
                        raise ValueError(f"{error}: batch norm cannot train on one sample, and single ones are asked for; put it in eval mode, or take a method with batches") from error
                    raise
            return n * float(mean), n * self._flat(parts)

        name = name or f"{_name_of(loss)} of {type(module).__qualname__}"
        self._oracle = Oracle(gradient, batched=True, losses=True, block=block, name=name)

    def point(self) -> Vector:
        """The parameters of the module as they are now."""
        return self._flat({key: value.detach() for key, value in self._free.items()})

    def bind(self, start: Any) -> tuple[Oracle, Vector, Callable[[Vector], Any]]:
        """The oracle of vectors, the start as one, and the way to a dictionary of tensors."""
        vector = np.array(start, np.float64).reshape(-1)
        size = sum(count for _, _, count, *_ in self._shapes)
        if len(vector) != size:
            raise ValueError(f"x must have the {size} numbers of the module's parameters, but has {len(vector)}")
        return self._oracle, vector, self._tree

    def write(self, x: Vector) -> None:
        """Sets the parameters of the module."""
        with torch.no_grad():
            for key, part in self._tree(x).items():
                self._free[key].copy_(part)

    def _flat(self, parts: Mapping[str, Any]) -> Vector:
        flat: Vector = torch.cat([parts[key].reshape(-1).to("cpu", torch.float64) for key, *_ in self._shapes]).numpy()
        return flat

    def _tree(self, x: Vector) -> dict[str, Any]:
        parts, at = {}, 0
        for key, shape, count, dtype, device in self._shapes:
            parts[key] = torch.tensor(x[at : at + count], dtype=dtype, device=device).reshape(shape)
            at += count
        return parts


def oracle(
    module: Any,
    loss: Any,
    data: Any,
    *,
    collate: Callable[[list[Any]], Any] | None = None,
    block: int | None = None,
    name: str | None = None,
) -> ModuleOracle:
    """The mean loss of a module over its data, for :func:`pasta_opt.certify` and :class:`pasta_opt.StopWhenCertified`: its point is the module's own, as it
    is when they are called. The arguments are those of :func:`minimize`; batch norm has to be in eval mode."""
    return ModuleOracle(module, loss, data, collate, block, name)


def _of_batch(loss: Any) -> Callable[[Callable[..., Any], Any], Any]:
    """``loss(model, batch)``, of a function like that or of a loss of torch itself, which takes (input, target)."""
    if not callable(loss):
        raise TypeError(f"loss must be a function loss(model, batch), but is {loss!r}")
    is_functional = getattr(loss, "__module__", None) == "torch.nn.functional"
    if not (is_functional or isinstance(loss, torch.nn.Module)):
        of_batch: Callable[[Callable[..., Any], Any], Any] = loss
        return of_batch
    if getattr(loss, "reduction", "mean") != "mean":
        raise ValueError(f'the loss must be a mean over the batch, but has reduction="{loss.reduction}"')

    def of_pair(model: Callable[..., Any], batch: Any) -> Any:
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            raise TypeError(f"a loss of torch's own needs batches (input, target), but a batch is {_a(batch)}: give loss(model, batch)")
        return loss(model(batch[0]), batch[1])

    return of_pair


def minimize(
    module: Any,
    loss: Any,
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
        ``loss(model, batch)``: the *mean* loss of a batch, a tensor of one number. `model` is called like the module. Or a loss of torch itself, such as
        ``torch.nn.functional.mse_loss`` or ``torch.nn.CrossEntropyLoss()``, for batches (input, target).
    data
        A ``DataLoader``, whose dataset and collate function are used; a dataset with ``len(data)`` and ``data[i]``, whose rows are drawn with replacement, or a function ``data(rng, n)`` that returns a batch of n samples
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
    trained = ModuleOracle(module, loss, data, collate, block, name)
    keywords.setdefault("check", not trained.trains_batch_norm)
    bound, start, _ = trained.bind(trained.point())
    result = _minimize(bound, start, **keywords)
    trained.write(result.x)
    return result


def _batches(data: Any, collate: Callable[[list[Any]], Any] | None) -> Callable[[np.random.Generator, int], Any]:
    if isinstance(data, tuple | Mapping):
        raise TypeError(
            f"data must be a dataset, such as torch.utils.data.TensorDataset(X, Y) or a list of rows, or a function of (rng, n), but is {_a(data)}"
        )
    if isinstance(data, torch.utils.data.DataLoader):
        # Its batches come in an order of their own; samples here are drawn by address.
        if isinstance(data.dataset, torch.utils.data.IterableDataset):
            raise TypeError("the DataLoader's dataset has no length and no rows by number: give a function of (rng, n)")
        data, collate = data.dataset, collate or data.collate_fn
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
