"""Own measurements on top of predictions, weighed by precision in log space.

Predictions of configurations that are alike err alike. With the covariance K of their errors, own runs move
every prediction that shares something with them: Gaussian process regression (Rasmussen and Williams 2006,
section 2.2). With K = τ² everywhere it is the precision-weighted mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from knowledge.core.domain.arrays import Array

SIGMA = 0.10  # standard deviation of ln θ between repeats of a configuration
CPU_SIGMA = 0.20  # of CPU slots: they share cores and memory with whatever else runs on the node
MEMORY_SIGMA = 0.05
STATED_RUNS = 10  # own runs that the stated σ counts as, beside what own runs show of it
TAIL = 4.0  # degrees of freedom of the noise: a run that something disturbed counts little
ROUNDS = 30  # of fitting the noise; it settles in about ten


@dataclass(frozen=True, slots=True)
class ResidualPosterior:
    """The posterior after m observed errors.

    precision: inverse of their covariance with noise, (m, m).
    coefficients: precision times the errors, (m,).
    variances: of the noise of each, (m,).
    noise: standard deviation of a usual one.
    """

    precision: Array
    coefficients: Array
    variances: Array
    noise: float

    @classmethod
    def of(cls, covariance: Array, errors: Array, variances: Array, noise: float) -> ResidualPosterior:
        """covariance: of the errors without noise, (m, m)."""
        precision = np.linalg.inv(covariance + np.diag(variances))
        return cls(precision, precision @ errors, variances, noise)

    def mean(self, cross: Array) -> Array:
        """Expected errors, (n,). cross: their covariance with the observed ones, (n, m)."""
        found: Array = cross @ self.coefficients
        return found

    def explained(self, cross: Array) -> Array:
        """Variance that is gone of each of n errors, shape (n,)."""
        found: Array = np.einsum("nm,nm->n", cross @ self.precision, cross)
        return found

    def left_out(self) -> tuple[Array, Array]:
        """Return (deviation of each error from its prediction, variance without noise).

        The prediction of an error is made from the others. Both have shape (m,). The formula is
        equation 5.12 of Rasmussen and Williams.
        """
        own = np.diag(self.precision)
        return self.coefficients / own, np.maximum(1 / own - self.variances, 0.0)


def fit_residuals(covariance: Array, errors: Array, sigma: float = SIGMA) -> ResidualPosterior:
    """Return the posterior with noise fitted to the errors; outliers weigh less.

    covariance: (m, m).

    The fit is expectation maximisation of Student-t noise (Lange, Little and Taylor 1989). The
    stated σ counts as `STATED_RUNS` more, so that a handful of runs that agree by chance is not
    taken for exact.
    """
    variance, weights = sigma**2, np.ones(len(errors))
    for _ in range(ROUNDS):
        gain = covariance @ np.linalg.inv(covariance + np.diag(variance / weights))
        left = np.diag(covariance) - np.einsum("ij,ij->i", gain, covariance)
        off = (errors - gain @ errors) ** 2 + left
        weights = (TAIL + 1) / (TAIL + off / variance)
        variance = (STATED_RUNS * sigma**2 + (weights * off).sum()) / (STATED_RUNS + len(errors))
    return ResidualPosterior.of(covariance, errors, variance / weights, math.sqrt(variance))
