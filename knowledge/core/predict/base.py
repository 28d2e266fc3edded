"""Predictors over columns.

Here is physics alone; `predict.predictor` adds what history teaches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.analytic import cost_model, peak_memory, stack
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.analytic.step_time import stated_rate
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, Interval, Prediction, Source
from knowledge.core.predict.error_kernel import ErrorKernel

MIN_P_VALID = 0.9  # what a recommendation may risk
MEMORY_TAU = 0.15  # stated standard deviation of ln(peak memory) around the prior
MEASURED_MARGIN = 1.05  # a learnt peak includes fragmentation, so it needs less room than the prior's
# Predictions of unfamiliar peaks count where they are this much beyond the capacity; sooner of new settings.
PREDICTION_MARGIN = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionBatch:
    """Predictions of n configurations as arrays of shape (n,).

    `source` holds `Source` values.
    """

    p_valid: Array
    rate: Array
    rate_low: Array
    rate_high: Array
    memory: Array
    memory_low: Array
    memory_high: Array
    source: Sequence[Source]
    outside: Mask


class BasePredictor(ABC):
    """The base of all predictors: predictions as values on top of `score`.

    catalogue: facts for names; of GPUs as the cluster has them, where a cluster is asked about.
    """

    catalogue: Catalogue
    version: int | None = None

    @abstractmethod
    def score(self, configs: Sequence[Config], c: ConfigTable) -> PredictionBatch:
        """Predictions for the configurations, whose columns are `c`."""

    @abstractmethod
    def covariance(self, configs: Sequence[Config], c: ConfigTable) -> Array:
        """Return the covariance of the errors of ln(rate), shape (n, n).

        The configurations are on one GPU model.

        c: their columns.
        """

    def physics(self, c: ConfigTable) -> Array:
        """Tokens/s by physics alone: rough, and far quicker than `score`. Shape (n,)."""
        return stated_rate(c)

    def predict(self, xs: Sequence[Config]) -> list[Prediction]:
        """One prediction a configuration; those that break a launch rule say which."""
        if not xs:
            return []
        c = columns(xs, self.catalogue)
        scores = self.score(xs, c)
        reasons = [config_space.refused(x, self.catalogue) for x in xs]
        return [prediction(scores, row, reason) for row, reason in enumerate(reasons)]


def prediction(scores: PredictionBatch, row: int, refused: str | None = None) -> Prediction:
    """One row of the scores as a value."""
    return Prediction(
        p_valid=0.0 if refused else float(scores.p_valid[row]),
        tokens_per_second=_interval(scores.rate[row], scores.rate_low[row], scores.rate_high[row]),
        peak_memory_bytes=_interval(scores.memory[row], scores.memory_low[row], scores.memory_high[row]),
        source=scores.source[row],
        outside=bool(scores.outside[row]),
        refused=refused,
    )


def _interval(value: float, low: float, high: float) -> Interval:
    """Bounds that are not finite become None: unknown."""
    return Interval(
        float(value), float(low) if np.isfinite(low) else None, float(high) if np.isfinite(high) else None
    )


def peaks_of_usual(
    configs: Sequence[Config], c: ConfigTable, catalogue: Catalogue
) -> dict[int, tuple[Array, Array]]:
    """Return peaks by usual values of what is not stated, and to fit, by row.

    The latter are probabilities. Rows that state everything are absent.
    """
    variants = {row: stack.usual_variants(x) for row, x in enumerate(configs) if stack.unstated(x)}
    if not variants:
        return {}
    padded = [float(c.padded[row]) for row, some in variants.items() for _ in some]
    table = columns([x for some in variants.values() for x in some], catalogue, padded)
    ends = np.cumsum([len(some) for some in variants.values()])
    peaks, fitting = (np.split(found, ends[:-1]) for found in (cost_model.memory(table).total, p_fits(table)))
    return dict(zip(variants, zip(peaks, fitting, strict=True), strict=True))


def p_fits(c: ConfigTable) -> Array:
    """Probability that a configuration fits, from the memory prior alone."""
    return fit_probability(cost_model.fits(c) * cost_model.MEMORY_MARGIN, cost_model.MEMORY_MARGIN)


def fit_probability(room: Array, margin: float) -> Array:
    """Probability of fitting with `room` = capacity / predicted peak.

    A logistic curve in ln(room): 0.5 where the peak equals the capacity, `MIN_P_VALID` at the margin.
    """
    share: Array = 1 / (1 + np.exp(-np.clip(_steepness(margin) * np.log(room), -50, 50)))
    return share


def where_larger(p_fits: Array, by: Array) -> Array:
    """Return the prior's probabilities of fitting, were peaks larger.

    by: ln of the factor, shape (n,).
    """
    known = np.clip(p_fits, 1e-15, 1 - 1e-15)
    odds = np.log(known / (1 - known)) - _steepness(cost_model.MEMORY_MARGIN) * by
    return np.where(by == 0, p_fits, 1 / (1 + np.exp(-np.clip(odds, -50, 50))))


def _steepness(margin: float) -> float:
    """The steepness of the logistic curve of `fit_probability`."""
    return float(np.log(MIN_P_VALID / (1 - MIN_P_VALID)) / np.log(margin))


@dataclass(frozen=True, kw_only=True)
class PriorPredictor(BasePredictor):
    """Physics alone. Its intervals are stated, not calibrated.

    Of a setting that memory depends on and that is not stated (`stack.unstated`), both usual values are as
    likely; history knows better.
    """

    catalogue: Catalogue
    version: int | None = None

    def score(self, configs: Sequence[Config], c: ConfigTable) -> PredictionBatch:
        rate, memory = stated_rate(c), cost_model.memory(c).total
        p_valid = p_fits(c)
        low, high = memory.copy(), memory.copy()
        for row, (peaks, fitting) in peaks_of_usual(configs, c, self.catalogue).items():
            p_valid[row] = fitting.mean()
            low[row], high[row] = min(low[row], peaks.min()), max(high[row], peaks.max())
        memory, high = peak_memory.with_paged(c, memory), peak_memory.with_paged(c, high)
        factor = np.exp(cost_model.Z_80 * cost_model.spread(c))
        memory_factor = np.exp(cost_model.Z_80 * MEMORY_TAU)
        return PredictionBatch(
            p_valid=p_valid,
            rate=rate,
            rate_low=rate / factor,
            rate_high=rate * factor,
            memory=memory,
            memory_low=low / memory_factor,
            memory_high=high * memory_factor,
            source=[Source.PRIOR] * len(configs),
            outside=np.zeros(len(configs), dtype=bool),
        )

    def covariance(self, configs: Sequence[Config], c: ConfigTable) -> Array:
        variance = cost_model.spread(c) ** 2
        kernel = ErrorKernel.of(configs, c, variance, variance)
        return kernel.covariance(kernel)
