"""Corrections from own runs on a GPU model for every configuration on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Source
from knowledge.core.model.intervals import quantile
from knowledge.core.predict import gp_residual
from knowledge.core.predict.base import PredictionBatch
from knowledge.core.predict.error_kernel import ErrorKernel
from knowledge.core.predict.gp_residual import ResidualPosterior

OTHERS = 30  # runs that what the other GPUs say of a GPU's errors counts as
WILD_PEAK = 3.0  # times the prediction, or a part of it: such a peak measured something else
USUAL_PEAKS = 10  # runs that peaks as predicted count as, for models that did not run
WIDEST = 2 * cost_model.CPU_TAU  # standard deviation of ln θ where the interval is unbounded


def predicted_spread(scores: PredictionBatch) -> Array:
    """Variance of ln θ around the predictions, as their intervals say. Shape (n,)."""
    sd: Array = np.minimum(np.log(scores.rate_high / scores.rate) / cost_model.Z_80, WIDEST)
    return sd**2


@dataclass(frozen=True, slots=True)
class LocalCorrection:
    """Own runs on one GPU model against what was predicted of them.

    stretch: the factor between their errors and those that were expected, shrunk for few runs.
    memory: by model and method the factor between measured and predicted peaks; shared: that of models and
    methods that did not run, where physics alone answers: what history taught is right on average.
    learnt_from: may runs have taught the predictor as well? Then they err less than new ones will, and make
    no interval narrower.
    """

    kin: ErrorKernel
    learnt: ResidualPosterior
    stretch: float
    memory: Mapping[str, float]
    shared: float
    learnt_from: bool

    @classmethod
    def of(
        cls,
        runs: Sequence[Measurement],
        there: ConfigTable,
        base: PredictionBatch,
        kin: ErrorKernel,
        *,
        learnt_from: bool,
    ) -> LocalCorrection:
        """base: predictions of the runs without themselves."""
        measured = np.array([run.tokens_per_second for run in runs], dtype=float)
        sigma = gp_residual.CPU_SIGMA if there.cpu.all() else gp_residual.SIGMA
        found = gp_residual.fit_residuals(kin.covariance(kin), np.log(measured / base.rate), sigma)
        peaks = np.array([run.peak_memory_fraction or np.nan for run in runs], dtype=float)
        factors = peaks * there.memory / base.memory
        stretch = _stretch(kin, found, predicted_spread(base))
        physics_alone = all(one is Source.PRIOR for one in base.source)
        shared = shared_factor(factors) if physics_alone else 1.0
        of_kinds = median_factors(kin.kinds, factors / shared)
        memory = {kind: shared * factor for kind, factor in of_kinds.items()}
        return cls(kin, found, stretch, memory, shared, learnt_from)

    def applied(self, base: PredictionBatch, kin: ErrorKernel) -> PredictionBatch:
        """Predictions on the GPU model, shape (n,), moved towards what the runs measured."""
        cross = kin.covariance(self.kin)
        unknown = 1 - self.learnt.explained(cross) / kin.variance
        sd = np.sqrt(_variance(unknown, predicted_spread(base), self.learnt.noise))
        least = np.minimum(sd, self.learnt.noise)
        factor = np.exp(cost_model.Z_80 * np.maximum(sd * self.stretch, least))
        if self.learnt_from:
            factor = np.maximum(factor, base.rate_high / base.rate)
        rate = base.rate * np.exp(self.learnt.mean(cross))
        memory = np.array([self.memory.get(kind, self.shared) for kind in kin.kinds])
        return replace(
            base,
            rate=rate,
            rate_low=rate / factor,
            rate_high=rate * factor,
            memory=base.memory * memory,
            memory_low=base.memory_low * memory,
            memory_high=base.memory_high * memory,
            source=[Source.OWN if one is Source.PRIOR else one for one in base.source],
        )

    def covariance(self, kin: ErrorKernel) -> Array:
        """Of the errors that are left on the GPU model, shape (n, n)."""
        cross = kin.covariance(self.kin)
        left: Array = kin.covariance(kin) - cross @ self.learnt.precision @ cross.T
        return left


def _variance(unknown: Array, expected: Array, noise: float) -> Array:
    """Return the variance of ln θ.

    It is the expected one for the share that is still unknown, and the noise of runs for the rest.
    """
    share = np.clip(unknown, 0.0, 1.0)
    found: Array = share * expected + (1 - share) * noise**2
    return found


def _stretch(kin: ErrorKernel, learnt: ResidualPosterior, expected: Array) -> float:
    """Return the factor between the errors of n runs and the expected errors.

    Each run is predicted by the others. The expectation from other GPUs counts as `OTHERS` runs.
    """
    errors, left = learnt.left_out()
    sd = np.sqrt(_variance(left / kin.variance, expected, learnt.noise))
    reached = quantile(np.abs(errors) / sd) / cost_model.Z_80
    count = len(errors)
    return float(reached ** (count / (count + OTHERS))) if np.isfinite(reached) else 1.0


def shared_factor(factors: Array) -> float:
    """Return the median factor of n runs, wild ones left out, shrunk for few.

    Peaks as predicted count as `USUAL_PEAKS` runs, in logarithms.
    """
    known = factors[_plausible(factors)]
    return float(np.median(known) ** (len(known) / (len(known) + USUAL_PEAKS))) if len(known) else 1.0


def _plausible(factors: Array) -> Mask:
    found: Mask = np.isfinite(factors) & (factors > 1 / WILD_PEAK) & (factors < WILD_PEAK)
    return found


def median_factors(kinds: Array, factors: Array) -> dict[str, float]:
    """Return the median factor of each kind, wild factors left out.

    A run as predicted is added, so one odd run moves a kind by half of its factor, in logarithms,
    and two that agree by all of it.
    """
    known = _plausible(factors)
    return {
        str(kind): float(np.exp(np.median([0.0, *np.log(factors[known & (kinds == kind)])])))
        for kind in np.unique(kinds[known])
    }
