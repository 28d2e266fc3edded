"""Corrections of rates from own runs on a GPU model for every configuration on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Source
from knowledge.core.model.intervals import quantile
from knowledge.core.predict import gp_residual
from knowledge.core.predict.base import PredictionBatch
from knowledge.core.predict.error_kernel import ErrorKernel
from knowledge.core.predict.gp_residual import ResidualPosterior

OTHERS = 30  # runs that what the other GPUs say of a GPU's errors counts as
WIDEST = 2 * cost_model.CPU_TAU  # standard deviation of ln θ where the interval is unbounded


def predicted_spread(scores: PredictionBatch) -> Array:
    """Variance of ln θ around the predictions, as their intervals say. Shape (n,)."""
    sd: Array = np.minimum(np.log(scores.rate_high / scores.rate) / cost_model.Z_80, WIDEST)
    return sd**2


@dataclass(frozen=True, slots=True)
class LocalCorrection:
    """Own runs on one GPU model against what was predicted of them.

    interval_scale: the factor between their errors and those that were expected, shrunk for few runs.
    learnt_from: may runs have taught the predictor as well? Then they err less than new ones will, and make
    no interval narrower.
    """

    kernel: ErrorKernel
    learnt: ResidualPosterior
    interval_scale: float
    learnt_from: bool

    @classmethod
    def of(
        cls,
        runs: Sequence[Measurement],
        there: ConfigTable,
        base: PredictionBatch,
        kernel: ErrorKernel,
        *,
        learnt_from: bool,
    ) -> LocalCorrection:
        """base: predictions of the runs without themselves."""
        measured = np.array([run.tokens_per_second for run in runs], dtype=float)
        sigma = gp_residual.CPU_SIGMA if there.cpu.all() else gp_residual.SIGMA
        found = gp_residual.fit_residuals(kernel.covariance(kernel), np.log(measured / base.rate), sigma)
        return cls(kernel, found, _interval_scale(kernel, found, predicted_spread(base)), learnt_from)

    def applied(self, base: PredictionBatch, kernel: ErrorKernel) -> PredictionBatch:
        """Predictions on the GPU model, shape (n,), moved towards what the runs measured."""
        cross = kernel.covariance(self.kernel)
        unknown = 1 - self.learnt.explained(cross) / kernel.variance
        sd = np.sqrt(_variance(unknown, predicted_spread(base), self.learnt.noise))
        least = np.minimum(sd, self.learnt.noise)
        factor = np.exp(cost_model.Z_80 * np.maximum(sd * self.interval_scale, least))
        if self.learnt_from:
            factor = np.maximum(factor, base.rate_high / base.rate)
        rate = base.rate * np.exp(self.learnt.mean(cross))
        return replace(
            base,
            rate=rate,
            rate_low=rate / factor,
            rate_high=rate * factor,
            source=[Source.OWN if one is Source.PRIOR else one for one in base.source],
        )

    def covariance(self, kernel: ErrorKernel) -> Array:
        """Covariance of the errors that are left on the GPU model, shape (n, n)."""
        cross = kernel.covariance(self.kernel)
        left: Array = kernel.covariance(kernel) - cross @ self.learnt.precision @ cross.T
        return left


def _variance(unknown: Array, expected: Array, noise: float) -> Array:
    """Return the variance of ln θ.

    It is the expected one for the share that is still unknown, and the noise of runs for the rest.
    """
    share = np.clip(unknown, 0.0, 1.0)
    found: Array = share * expected + (1 - share) * noise**2
    return found


def _interval_scale(kernel: ErrorKernel, learnt: ResidualPosterior, expected: Array) -> float:
    """Return the factor between the errors of n runs and the expected errors.

    Each run is predicted by the others. The expectation from other GPUs counts as `OTHERS` runs.
    """
    errors, left = learnt.left_out()
    sd = np.sqrt(_variance(left / kernel.variance, expected, learnt.noise))
    reached = quantile(np.abs(errors) / sd) / cost_model.Z_80
    count = len(errors)
    return float(reached ** (count / (count + OTHERS))) if np.isfinite(reached) else 1.0
