"""The predictor that answers from own measurements, history and physics, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from knowledge.core import blend, estimators, features, prior
from knowledge.core.blend import Observations
from knowledge.core.columns import Array, Columns, Hardware, columns
from knowledge.core.intervals import ENOUGH
from knowledge.core.learned import Knowledge, kind_of, pressure
from knowledge.core.predictor import PriorPredictor, Scorer, Scores, p_fits, p_room
from knowledge.core.rows import Row
from knowledge.core.types import Config, Source

REPEATED_P_VALID = 0.98
MEASURED_MARGIN = 1.05  # a learnt peak includes fragmentation, so it needs less room than the prior's
# Forecasts of unfamiliar peaks speak up where they are this much beyond the capacity; sooner of new settings.
FORECAST_MARGIN = 1.1
FAILED_P_VALID = 0.05
MEMORY_WIDTH = 0.2  # stated half-width of ln(peak) where no peak was measured


@dataclass(frozen=True, kw_only=True)
class LearnedPredictor(Scorer):
    """`knowledge` by kind of hardware; kinds without any are answered by the prior."""

    knowledge: Mapping[str, Knowledge]
    observations: Observations = field(default_factory=lambda: Observations.of([]))
    here: Mapping[str, Hardware] = field(default_factory=dict)
    version: int | None = None

    def score(self, configs: Sequence[Config], c: Columns) -> Scores:
        scores = self._base(configs, c)
        if self.observations.kinds:
            scores = self._blended(configs, c, scores)
        return self._repeated(configs, c, scores) if self.observations.repeats else scores

    def physics(self, c: Columns) -> Array:
        """Tokens/s by physics with the weights that history fitted. Shape (n,)."""
        rate = prior.throughput(c)
        for kind, knowledge in self.knowledge.items():
            rows = c.cpu == (kind == "cpu")
            rate[rows] = knowledge.rate.physics_.value(c.take(rows))
        return rate

    def _base(self, configs: Sequence[Config], c: Columns) -> Scores:
        """The prior, with what history teaches laid over the rows of each kind that has any."""
        scores = PriorPredictor().score(configs, c)
        if not self.knowledge:
            return scores
        kinds = np.array([kind_of(x) for x in configs])
        for kind, knowledge in self.knowledge.items():
            rows = np.flatnonzero(kinds == kind)
            if len(rows):
                some = [configs[int(row)] for row in rows]
                with estimators.one_thread():
                    scores = _laid_over(scores, rows, _learned(knowledge, some, c.take(rows)))
        return scores

    def _blended(self, configs: Sequence[Config], c: Columns, scores: Scores) -> Scores:
        """Rows with own runs of the same model, method and GPU, moved towards what those measured."""
        kinds = [(x.model_name, x.method, x.gpu_model) for x in configs]
        for kind in sorted(set(kinds)):
            runs = self.observations.of_kind(configs[kinds.index(kind)])
            if runs:
                rows = np.array([row for row, other in enumerate(kinds) if other == kind], dtype=np.intp)
                scores = self._towards(scores, rows, c.take(rows), runs)
        return scores

    def _towards(self, scores: Scores, rows: Array, c: Columns, runs: Sequence[Row]) -> Scores:
        there_configs = [run.config for run in runs]
        there = columns(there_configs, self.here, [run.padded_tokens for run in runs])
        base = self._base(there_configs, there)
        tau = np.log(scores.rate_high[rows] / scores.rate[rows]) / prior.Z_80
        measured = np.array([run.tokens_per_second for run in runs], dtype=float)
        moved, sd = blend.shift(
            measured, base.rate, _coordinates(c), _coordinates(there), np.minimum(tau, 2 * prior.CPU_TAU)
        )
        rate = scores.rate[rows] * np.exp(moved)
        factor = np.exp(prior.Z_80 * np.sqrt(sd**2 + blend.SIGMA**2))
        memory = _memory_shift(runs, base, there)
        return replace(
            scores,
            rate=_put(scores.rate, rows, rate),
            rate_low=_put(scores.rate_low, rows, rate / factor),
            rate_high=_put(scores.rate_high, rows, rate * factor),
            memory=_put(scores.memory, rows, scores.memory[rows] * memory),
            memory_low=_put(scores.memory_low, rows, scores.memory_low[rows] * memory),
            memory_high=_put(scores.memory_high, rows, scores.memory_high[rows] * memory),
        )

    def _repeated(self, configs: Sequence[Config], c: Columns, scores: Scores) -> Scores:
        """Exact repeats: the median of what they measured, and whether they ran."""
        changed = {name: getattr(scores, name).copy() for name in _ARRAYS}
        source = list(scores.source)
        for row, config in enumerate(configs):
            repeat = self.observations.repeat(config, float(c.padded[row]))
            if repeat is None:
                continue
            if repeat.runs or repeat.out_of_memory:
                changed["p_valid"][row] = REPEATED_P_VALID if repeat.runs else FAILED_P_VALID
            if repeat.rate:
                factor = float(np.exp(prior.Z_80 * blend.SIGMA))
                _set(changed, row, "rate", repeat.rate, factor)
                source[row] = Source.EXACT
            if repeat.memory_fraction:
                factor = float(np.exp(prior.Z_80 * blend.MEMORY_SIGMA))
                _set(changed, row, "memory", repeat.memory_fraction * float(c.memory[row]), factor)
        return replace(scores, source=source, **changed)


_ARRAYS = ("p_valid", "rate", "rate_low", "rate_high", "memory", "memory_low", "memory_high")


def _set(arrays: dict[str, Array], row: int, name: str, value: float, factor: float) -> None:
    arrays[name][row] = value
    arrays[f"{name}_low"][row] = value / factor
    arrays[f"{name}_high"][row] = value * factor


def _put(values: Array, rows: Array, new: Array) -> Array:
    changed = values.copy()
    changed[rows] = new
    return changed


def _laid_over(scores: Scores, rows: Array, some: Scores) -> Scores:
    """The scores with the given rows replaced."""
    source = list(scores.source)
    for place, row in enumerate(rows):
        source[row] = some.source[place]
    arrays = {name: _put(getattr(scores, name), rows, getattr(some, name)) for name in (*_ARRAYS, "outside")}
    return replace(scores, source=source, **arrays)


def _coordinates(c: Columns) -> Array:
    """Where a configuration lies, in doublings; a setting that differs counts as one. Shape (n, 5)."""
    sizes = [np.log2(np.maximum(getattr(c, name), 1)) for name in ("gpus", "batch", "padded")]
    return np.column_stack([*sizes, c.checkpointing.astype(float), c.fsdp.astype(float)])


def _memory_shift(runs: Sequence[Row], base: Scores, there: Columns) -> float:
    """The factor by which own runs needed more or less memory than predicted; 1 without measurements."""
    ratios = [
        run.peak_memory_fraction * there.memory[row] / base.memory[row]
        for row, run in enumerate(runs)
        if run.peak_memory_fraction
    ]
    return float(np.median(ratios)) if ratios else 1.0


def _learned(knowledge: Knowledge, configs: Sequence[Config], c: Columns) -> Scores:
    X = features.matrix(configs, c, knowledge.vocabulary)
    seen = knowledge.seen
    unseen_model, unseen_gpu = seen.unseen_model(configs), seen.unseen_gpu(configs)
    outside = seen.outside(configs, c)
    rate = knowledge.rate.predict(configs, c, X, unseen_model, unseen_gpu)
    width = np.exp(knowledge.rate.width(configs, unseen_model, unseen_gpu))
    memory, memory_width = prior.memory(c).total, np.full(len(configs), np.exp(MEMORY_WIDTH))
    if knowledge.memory is not None:
        memory = knowledge.memory.predict(configs, c, X, unseen_model, unseen_gpu)
        memory_width = np.exp(knowledge.memory.width(configs, unseen_model, unseen_gpu))
    unfamiliar = outside | unseen_model | (knowledge.rate.runs(configs) < ENOUGH)
    doubted = memory / np.where(seen.unseen_setting(configs), 1.0, FORECAST_MARGIN)
    return Scores(
        p_valid=_p_valid(knowledge, configs, c, np.where(unfamiliar, doubted, 0.0)),
        rate=rate,
        rate_low=rate / width,
        rate_high=rate * width,
        memory=memory,
        memory_low=memory / memory_width,
        memory_high=memory * memory_width,
        source=[Source.MODEL] * len(configs),
        outside=outside,
    )


def _p_valid(knowledge: Knowledge, configs: Sequence[Config], c: Columns, doubtful: Array) -> Array:
    """The classifier's word; where little or nothing was measured the memory forecasts may lower it.

    doubtful: bytes of one GPU that such rows are suspected to need, 0 for the others.
    """
    fits = p_fits(c)
    if knowledge.validity is None:
        return fits
    X = features.validity_matrix(configs, c, pressure(knowledge.memory, c))
    raw = knowledge.validity.ensemble.predict(X)
    learned = knowledge.validity.calibration.predict(raw)
    doubted = np.minimum(fits, p_room(c.memory / np.maximum(doubtful, 1.0), MEASURED_MARGIN))
    return np.where(doubtful > 0, np.minimum(learned, doubted), learned)
