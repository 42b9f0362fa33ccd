"""Losses written in JAX, differentiated, vectorised and compiled.

>>> import jax.numpy as jnp, jax.random, pasta_opt, pasta_opt.jax
>>> def sample(key):                                  # one sample, a pytree
...     a, e = jax.random.split(key)
...     row = jax.random.normal(a, (2,))
...     return row, row @ jnp.array([1.0, -2.0]) + jax.random.normal(e)
>>> def loss(params, xi):                             # its loss
...     row, label = xi
...     return (row @ params["w"] - label) ** 2 / 2
>>> oracle = pasta_opt.jax.oracle(loss, sample)
>>> result = pasta_opt.minimize(oracle, {"w": jnp.zeros(2)}, budget=20_000)
>>> bool(abs(result.params["w"] - jnp.array([1.0, -2.0])).max() < 0.2)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._oracle import Oracle, Structured, _block, _name_of

try:
    import jax  # type: ignore[import-not-found,unused-ignore]
    import jax.flatten_util  # type: ignore[import-not-found,unused-ignore]
    import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError(f"pasta_opt.jax needs JAX (pip install 'pasta-opt[jax]'): {error}") from error

Vector = NDArray[np.float64]


class JaxOracle(Structured):
    """What :func:`oracle` returns: takes and gives back pytrees."""

    def __init__(self, loss: Callable[[Any, Any], Any], sample: Callable[[Any], Any], block: int | None, name: str | None) -> None:
        for what, function in (("loss", loss), ("sample", sample)):
            if not callable(function):
                raise TypeError(f"{what} must be a function, but is {function!r}")
        self._loss, self._sample = loss, sample
        self._block = _block(block, True)
        self._name = name or _name_of(loss)
        #: What was compiled, by the structure of the parameters.
        self._compiled: dict[Any, Any] = {}

    def bind(self, start: Any) -> tuple[Oracle, Vector, Callable[[Vector], Any]]:
        """The oracle of vectors, the start as one, and the way back to a pytree."""
        leaves = jax.tree.leaves(start)
        if not leaves:
            raise ValueError("x0 must be a pytree with at least one array")
        for leaf in leaves:
            kind = jnp.asarray(leaf).dtype
            if not jnp.issubdtype(kind, jnp.floating):
                raise TypeError(f"x0 must be a pytree of floating point arrays, but has a leaf of dtype {kind}")
        flat, unravel = jax.flatten_util.ravel_pytree(start)
        dtype = flat.dtype
        vector = np.array(flat, np.float64)
        if not np.isfinite(vector).all():
            raise ValueError("x0 must be finite")

        structure = (jax.tree.structure(start), tuple((jnp.shape(leaf), str(jnp.asarray(leaf).dtype)) for leaf in leaves))
        if structure not in self._compiled:
            self._compiled[structure] = jax.jit(self._summed(unravel), static_argnums=3)
        compiled = self._compiled[structure]

        def gradient(x: Vector, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
            words = rng.integers(0, 2**32, size=2, dtype=np.uint32)
            loss, total = compiled(jnp.asarray(x, dtype), words, n, _size(n))
            return np.asarray(loss, np.float64), np.asarray(total, np.float64)

        oracle = Oracle(gradient, batched=True, losses=True, block=self._block, name=self._name)
        return oracle, vector, lambda x: unravel(jnp.asarray(x, dtype))

    def _summed(self, unravel: Callable[[Any], Any]) -> Callable[[Any, Any, Any, int], Any]:
        """The sums of losses and gradients of the first `count` of `size` samples."""

        def one(x: Any, key: Any) -> Any:
            return self._loss(unravel(x), self._sample(key))

        each = jax.vmap(jax.value_and_grad(one), in_axes=(None, 0))

        def summed(x: Any, words: Any, count: Any, size: int) -> Any:
            key = jax.random.wrap_key_data(words, impl="threefry2x32")
            # By number, so that a sample's key does not depend on how many there are.
            keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(size))
            losses, gradients = each(x, keys)
            wanted = jnp.arange(size) < count
            return jnp.where(wanted, losses, 0).sum(), jnp.where(wanted[:, None], gradients, 0).sum(axis=0)

        return summed


def _size(count: int) -> int:
    """A power of 4 that is large enough: the number of samples is data, so that few sizes are compiled."""
    return 1 << 2 * (((count - 1).bit_length() + 1) // 2)


def oracle(
    loss: Callable[[Any, Any], Any], sample: Callable[[Any], Any], *, block: int | None = None, name: str | None = None
) -> JaxOracle:
    """An oracle of f(params) = E loss(params, xi), xi drawn by ``sample(key)``, for every function of this package that takes an oracle.

    `loss` takes a pytree of parameters and one sample, a pytree, and returns a number; it is differentiated, vectorised over samples and compiled. `sample`
    takes a key of ``jax.random``, which is made from the sample's address: the same seed gives the same samples, and both points of a difference see them.
    The start is a pytree, and so is ``result.params``. Numbers have the precision of the start; for double precision, enable JAX's x64.
    """
    return JaxOracle(loss, sample, block, name)


def rows(data: Any) -> Callable[[Any], Any]:
    """What `sample` of :func:`oracle` is for a data set in memory: rows drawn with replacement, from a pytree of arrays with a common first axis.

    >>> import jax.numpy as jnp, jax.random, pasta_opt.jax
    >>> draw = pasta_opt.jax.rows((jnp.arange(6.0).reshape(3, 2), jnp.arange(3)))
    >>> a, y = draw(jax.random.key(0))
    >>> bool(a[0] == 2 * y)
    True
    """
    leaves = jax.tree.leaves(data)
    sizes = {jnp.shape(leaf)[:1] for leaf in leaves}
    if len(sizes) != 1 or sizes == {()} or sizes == {(0,)}:
        raise ValueError(f"data must be arrays with a common first axis of at least one row, but their shapes are {[jnp.shape(leaf) for leaf in leaves]}")
    ((size,),) = sizes
    whole = jax.tree.map(jnp.asarray, data)

    def sample(key: Any) -> Any:
        row = jax.random.randint(key, (), 0, size)
        return jax.tree.map(lambda leaf: leaf[row], whole)

    return sample
