"""Corrections of peaks from measured ones on a GPU model, with or without rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.predict import gp_residual
from knowledge.core.predict.base import (
    MEASURED_MARGIN,
    PREDICTION_MARGIN,
    PredictionBatch,
    fit_probability,
    where_larger,
)
from knowledge.core.predict.gp_residual import ResidualPosterior
from knowledge.core.predict.peak_kernel import EFFECTS, PeakKernel

WILD_PEAK = 3.0  # times the prediction, or a part of it: such a peak measured something else
STEP = 1.25  # runs say something of those that need up to so much more of the GPU


@dataclass(frozen=True, slots=True)
class PeakCorrection:
    """Measured peaks on one GPU model against what was predicted of them.

    reached: by setting the largest share of the GPU that a run was predicted to take, and took.
    by_physics: is there no history, nor its classifier, for this kind of hardware?
    learnt_from: may the runs have taught the predictor as well? Then they make no interval narrower.
    """

    kernel: PeakKernel
    learnt: ResidualPosterior
    reached: Mapping[int, float]
    by_physics: bool
    learnt_from: bool

    @classmethod
    def of(
        cls,
        runs: Sequence[Measurement],
        there: ConfigTable,
        base: PredictionBatch,
        kernel: PeakKernel,
        *,
        by_physics: bool,
        learnt_from: bool,
    ) -> PeakCorrection | None:
        """base: predictions of the runs without themselves. None where all peaks are wild."""
        peaks = np.array([run.peak_memory_fraction or np.nan for run in runs], dtype=float) * there.memory
        errors = np.log(peaks / np.minimum(base.memory, there.memory))  # no GPU shows more than it has
        rows = np.flatnonzero(np.abs(errors) < np.log(WILD_PEAK))
        if not len(rows):
            return None
        some = kernel.take(rows)
        sigma = EFFECTS.run if some.physics.all() else gp_residual.MEMORY_SIGMA
        learnt = gp_residual.fit_residuals(some.covariance(some), errors[rows], sigma)
        shares = (np.minimum(peaks, base.memory) / there.memory)[rows]
        reached = {int(one): float(shares[some.settings == one].max()) for one in np.unique(some.settings)}
        return cls(some, learnt, reached, by_physics, learnt_from)

    def applied(self, base: PredictionBatch, kernel: PeakKernel, capacity: Array) -> PredictionBatch:
        """Predictions on the GPU model, shape (n,), moved towards what the runs measured.

        capacity: bytes of each row's GPU.
        """
        cross = kernel.covariance(self.kernel)
        moved, left = self.learnt.mean(cross), 1 - self.learnt.explained(cross) / kernel.variance
        memory = base.memory * np.exp(moved)
        near = self._in_reach(kernel, np.maximum(memory, base.memory) / capacity)
        narrower = np.where(near & (not self.learnt_from), np.sqrt(np.clip(left, 0.0, 1.0)), 1.0)
        low, high = self._at_least_noise(base, narrower)
        spread = np.sqrt(np.clip(left, 0.0, 1.0) * kernel.variance + self.learnt.noise**2)
        return replace(
            base,
            p_valid=self._p_valid(base, kernel, moved, cost_model.Z_80 * spread, near, capacity),
            memory=memory,
            memory_low=memory * low,
            memory_high=memory * high,
        )

    def _at_least_noise(self, base: PredictionBatch, narrower: Array) -> tuple[Array, Array]:
        """Factors of the bounds: narrower ones, but not below what equal runs differ by."""
        noise = cost_model.Z_80 * self.learnt.noise
        below, above = np.log(base.memory / base.memory_low), np.log(base.memory_high / base.memory)
        low, high = (np.maximum(side * narrower, np.minimum(side, noise)) for side in (below, above))
        return np.exp(-low), np.exp(high)

    def _p_valid(
        self,
        base: PredictionBatch,
        kernel: PeakKernel,
        moved: Array,
        margin: Array,
        near: Mask,
        capacity: Array,
    ) -> Array:
        """Return the probabilities to run, shape (n,).

        Peaks above the predicted ones lower them at once. Peaks below raise those of physics, by what is left
        beyond the margin of the correction, and only in reach of the runs; a classifier's they raise never.
        """
        if not self.by_physics:
            slack = np.where(kernel.physics, 1.0, PREDICTION_MARGIN)
            room = slack * capacity / (base.memory * np.exp(moved))
            doubted = np.minimum(base.p_valid, fit_probability(room, MEASURED_MARGIN))
            return np.where(moved > 0, doubted, base.p_valid)
        below = np.where(near, np.minimum(moved + margin, 0.0), 0.0)
        return where_larger(base.p_valid, np.where(moved > 0, moved, below))

    def _in_reach(self, kernel: PeakKernel, shares: Array) -> Mask:
        """Rows that need little more of the GPU than a run of their setting did."""
        reached = np.array([self.reached.get(int(one), 0.0) for one in kernel.settings])
        found: Mask = shares <= STEP * reached
        return found
