"""A stop rule for loops of one's own."""

from __future__ import annotations

from typing import Any

from ._measure import certify
from ._minimize import AnyBasis, AnyOracle
from ._native import _number, _whole
from ._result import Certificate
from ._terms import AnyTerm


class StopWhenCertified:
    """Says when a loop of your own is done: True as soon as fresh samples certify that the gradient at its point is at most `target`.

    oracle, target, delta, certificate, bounds, term, gamma
        As in :func:`pasta_opt.certify`.
    every
        Each so many calls there is an attempt; other calls cost nothing.
    budget
        The most samples of one attempt. An attempt at a point whose gradient is clearly above the target ends after a few thousand.
    seed
        Names the samples of all attempts.

    Attempt i is made with ``delta / (i * (i + 1))`` and samples of its own, so that *all* attempts together are wrong with a probability of at most `delta`, however
    many there are. Take one object for a loop; a second one spends delta anew.

    >>> import numpy as np, pasta_opt
    >>> def grad(x, rng, n):
    ...     return n * x + rng.normal(size=(n, 2)).sum(axis=0)
    >>> is_done, rng, x = pasta_opt.StopWhenCertified(grad, target=0.2, every=100), np.random.default_rng(0), np.array([5.0, 0.0])
    >>> for step in range(100_000):
    ...     x -= 0.01 * grad(x, rng, 1)
    ...     if is_done(x):
    ...         break
    >>> bool(np.linalg.norm(x) <= 0.2), is_done.certificate.is_certified
    (True, True)
    """

    def __init__(
        self,
        oracle: AnyOracle,
        target: float,
        delta: float = 0.05,
        *,
        every: int = 1000,
        budget: float | None = 1_000_000,
        certificate: AnyBasis | None = None,
        seed: int = 1,
        threads: int | None = None,
        bounds: Any = None,
        term: AnyTerm | None = None,
        gamma: float | None = None,
    ) -> None:
        self._oracle, self._every, self._seed = oracle, _whole("every", every, 1, 2**63), _whole("seed", seed, 0, 2**64 - 1)
        self._target, self._delta, self._basis = _number("target", target), _number("delta", delta), certificate
        if not 0 < self._delta < 1:
            raise ValueError(f"delta must be between 0 and 1, but is {delta!r}")
        self._others: dict[str, Any] = {"budget": budget, "threads": threads, "bounds": bounds, "term": term, "gamma": gamma}
        #: How often it was called.
        self.calls = 0
        #: What the attempts said, with the number of the call, in their order.
        self.history: list[tuple[int, Certificate]] = []

    @property
    def certificate(self) -> Certificate | None:
        """The last attempt; None before the first. Its `delta` is the share of the attempt."""
        return self.history[-1][1] if self.history else None

    @property
    def attempts(self) -> int:
        """How many attempts were made."""
        return len(self.history)

    @property
    def samples(self) -> int:
        """What all attempts have drawn."""
        return sum(certificate.samples for _, certificate in self.history)

    def __call__(self, x: Any = None) -> bool:
        """True if the loop is done at `x`, which may be left out where the oracle knows its point."""
        self.calls += 1
        if self.calls % self._every:
            return False
        number = self.attempts + 1
        share = self._delta / (number * (number + 1))
        # Another seed for each attempt: at the same point, too, its samples are its own.
        seed = (self._seed + self.attempts) % 2**64
        given: dict[str, Any] = {"target": self._target, "delta": share, "certificate": self._basis, "seed": seed, **self._others}
        found = certify(self._oracle, x, **given)
        self.history.append((self.calls, found))
        return found.is_certified

    def __repr__(self) -> str:
        if self.certificate is None:
            return f"StopWhenCertified: no attempt in {self.calls:,} calls"
        confidence = f"{100 * (1 - self._delta):.6g} %"
        tried = f"{self.attempts} attempt{'s' if self.attempts > 1 else ''}, {self.samples:,} samples, all together {confidence} confidence"
        bound = "no bound" if self.certificate.bound is None else f"bound {self.certificate.bound:.3g}"
        verdict = "certified" if self.certificate.is_certified else "not certified"
        return f"StopWhenCertified: {verdict}, {bound}, target {self._target:.3g} ({tried})"
