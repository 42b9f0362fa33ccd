"""Models of NumPyro, fitted until a certificate says that the fit is done; and certificates for its own fits.

:func:`fit` takes a model and its data. :func:`oracle` makes what :func:`pasta_opt.certify` and :class:`pasta_opt.StopWhenCertified` take of an ``SVI``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import vi
from .jax import JaxOracle

try:
    import jax  # type: ignore[import-not-found,unused-ignore]
    import jax.flatten_util  # type: ignore[import-not-found,unused-ignore]
    from numpyro import infer  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(f"pasta_opt.numpyro needs NumPyro (pip install numpyro): {error}") from error

Vector = NDArray[np.float64]


class ModelFit:
    """What :func:`fit` returns: a :class:`pasta_opt.vi.Fit` on R^d, and the way back to the sites of the model. Prints as the former."""

    def __init__(self, found: vi.Fit, constrained: Callable[[Vector], dict[str, Any]]) -> None:
        #: The fit of the unconstrained coordinates: means, certificate, report.
        self.fit = found
        self._constrained = constrained

    @property
    def is_certified(self) -> bool:
        """Whether a certificate says that the target was reached."""
        return self.fit.is_certified

    @property
    def certificate(self) -> Any:
        """The certificate, in unconstrained coordinates."""
        return self.fit.certificate

    def sample(self, n: int = 1000, seed: int = 0) -> dict[str, Vector]:
        """n draws of every site, deterministic ones included, each in its own space: arrays with a first axis of n."""
        return self._constrained(self.fit.sample(n, seed))

    def summary(self, n: int = 10_000, seed: int = 0) -> dict[str, dict[str, Vector]]:
        """Means and standard deviations of the sites in their own spaces, from n draws."""
        return {site: {"mean": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=1)} for site, draws in self.sample(n, seed).items()}

    def to_arviz(self, n: int = 1000, seed: int = 0) -> Any:
        """n draws as what ArviZ makes of them (an InferenceData, or xarray's DataTree); needs arviz. The certificate is in the attributes of the posterior."""
        import arviz  # type: ignore[import-not-found,import-untyped,unused-ignore]

        said = {"pasta_opt": self.fit.verdict(), "is_certified": int(self.fit.is_certified), "k_hat": self.fit.k_hat}
        made = arviz.from_dict({"posterior": self._one_chain(n, seed)}) if _takes_groups(arviz) else arviz.from_dict(posterior=self._one_chain(n, seed))
        made["posterior"].attrs.update(said)
        return made

    def _one_chain(self, n: int, seed: int) -> dict[str, Vector]:
        return {site: draws[None] for site, draws in self.sample(n, seed).items()}

    def __repr__(self) -> str:
        return repr(self.fit)

    def _repr_html_(self) -> str:
        return self.fit._repr_html_()


def _takes_groups(arviz: Any) -> bool:
    """True if from_dict takes a dictionary of groups, as it does from version 1 on."""
    return int(str(arviz.__version__).split(".")[0]) >= 1


def fit(
    model: Callable[..., Any],
    *arguments: Any,
    family: vi.Family = "meanfield",
    target: float | str = "0.1 sd",
    model_keywords: Mapping[str, Any] | None = None,
    seed: int = 1,
    **keywords: Any,
) -> ModelFit:
    """Fits a normal approximation to a model's posterior, in the unconstrained coordinates that NumPyro's own transforms give.

    `arguments` and `model_keywords` are those of the model; `family`, `target`, `seed` and the other keywords those of :func:`pasta_opt.vi.fit`. Errors in
    standard deviations are those of the unconstrained coordinates (of log sigma, where sigma is positive). All rows of the data are used at every draw: a
    plate with a ``subsample_size`` is refused.
    """
    given = dict(model_keywords or {})
    key = jax.random.PRNGKey(seed % 2**32)
    # As many models have their prior's median far from any trouble as have a good random start: the median needs no luck.
    initial = infer.util.initialize_model(
        key, model, init_strategy=infer.init_to_median(num_samples=15), model_args=arguments, model_kwargs=given
    )
    _refuse_subsampling(initial.model_trace)
    flat, unravel = jax.flatten_util.ravel_pytree(initial.param_info.z)
    if not len(flat):
        raise ValueError("the model has no latent sites")
    potential, postprocess = initial.potential_fn, initial.postprocess_fn

    def log_density(z: Any) -> Any:
        return -potential(unravel(z))

    names = _names(initial.param_info.z)
    found = vi.fit(log_density, np.asarray(flat, np.float64), family=family, target=target, names=names, seed=seed, **keywords)
    each = jax.jit(jax.vmap(lambda z: postprocess(unravel(z))))

    def constrained(draws: Vector) -> dict[str, Any]:
        return {site: np.asarray(values) for site, values in each(jax.numpy.asarray(draws, flat.dtype)).items()}

    return ModelFit(found, constrained)


def _names(tree: Mapping[str, Any]) -> list[str]:
    """A name for each coordinate, in the order of ``ravel_pytree``: that of the sites' names."""
    names = []
    for site in sorted(tree):
        shape = np.shape(tree[site])
        names += [site + (f"[{','.join(map(str, at))}]" if at else "") for at in np.ndindex(*shape)]
    return names


def _refuse_subsampling(trace: Mapping[str, Any]) -> None:
    for name, site in trace.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise ValueError(
                f"the plate {name} has a subsample_size of {site['args'][1]} of {site['args'][0]}, and the density would be that of one subsample: leave it out"
            )


class SviOracle(JaxOracle):
    """The negative ELBO of an ``SVI`` as an oracle: points are its unconstrained parameters. What :func:`oracle` returns."""

    def __init__(self, svi: Any, arguments: tuple[Any, ...], given: Mapping[str, Any], state: Any, block: int | None) -> None:
        if getattr(svi.loss, "num_particles", 1) != 1:
            raise ValueError("the SVI's loss must have num_particles=1: the certificate draws particles itself")
        if state.mutable_state is not None:
            raise ValueError("an SVI with mutable state changes its objective as it runs: there is nothing to certify")
        self._svi, self._state = svi, state
        constants = dict(svi.static_kwargs)

        def loss(parameters: Any, key: Any) -> Any:
            return svi.loss.loss(key, svi.constrain_fn(parameters), svi.model, svi.guide, *arguments, **given, **constants)

        super().__init__(loss, lambda key: key, block, f"negative ELBO of {getattr(svi.model, '__name__', 'a model')}")

    def point(self) -> Any:
        """The unconstrained parameters of the state."""
        return self.parameters(self._state)

    def parameters(self, state: Any) -> Any:
        """The unconstrained parameters of another state of the same SVI."""
        return self._svi.optim.get_params(state.optim_state)


def oracle(svi: Any, state: Any, *arguments: Any, block: int | None = None, **given: Any) -> SviOracle:
    """An oracle of the negative ELBO that an ``SVI`` minimises, for :func:`pasta_opt.certify` and :class:`pasta_opt.StopWhenCertified`.

    `state` is any state of ``svi.init`` or ``svi.update``; `arguments` and `given` are those of the model. The gradient is by the *unconstrained* parameters of the
    guide, in which NumPyro's optimiser walks: for an ``AutoNormal``, locations and transformed scales. The noise of a guide whose scale is parametrised
    otherwise than linearly can grow faster than the distance; a certificate speaks of one point, and does not mind.
    """
    return SviOracle(svi, arguments, given, state, block)


__all__ = ["ModelFit", "SviOracle", "fit", "oracle"]
