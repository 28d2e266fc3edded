"""The predictor that answers from own measurements, history and physics.

They are asked in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from knowledge.core.analytic import cost_model, peak_memory
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.data.measurement import Measurement, table
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, Source
from knowledge.core.model import estimators, features
from knowledge.core.model.fitted_model import FittedModel, hardware_kind
from knowledge.core.model.regressor import Regressor
from knowledge.core.predict import gp_residual
from knowledge.core.predict.base import (
    PREDICTION_MARGIN,
    BasePredictor,
    PredictionBatch,
    PriorPredictor,
    p_fits,
    peaks_of_usual,
)
from knowledge.core.predict.error_kernel import ErrorKernel
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.local_correction import LocalCorrection, predicted_spread
from knowledge.core.predict.peak_correction import PeakCorrection
from knowledge.core.predict.peak_kernel import PeakKernel
from knowledge.core.predict.run_probability import reassured, run_probability

REPEATED_P_VALID = 0.98
FAILED_P_VALID = 0.05
MEMORY_WIDTH = 0.2  # stated half-width of ln(peak) where no peak was measured


@dataclass(frozen=True, kw_only=True)
class LearnedPredictor(BasePredictor):
    """`knowledge` by kind of hardware; kinds without any are answered by the prior."""

    knowledge: Mapping[str, FittedModel]
    catalogue: Catalogue
    observations: Observations = field(default_factory=Observations)
    version: int | None = None

    def score(self, configs: Sequence[Config], c: ConfigTable) -> PredictionBatch:
        scores = self._blended(configs, c, self._base(configs, c))
        return self._repeated(configs, c, scores) if self.observations.repeats else scores

    def physics(self, c: ConfigTable) -> Array:
        """Tokens/s by physics with the weights that history fitted. Shape (n,)."""
        fitted = {kind == "cpu": knowledge.rate.physics_ for kind, knowledge in self.knowledge.items()}
        rate = np.empty(len(c.cpu))
        for cpu in np.unique(c.cpu):
            rows = np.flatnonzero(c.cpu == cpu)
            some = c.take(rows)
            rate[rows] = fitted[cpu].value(some) if cpu in fitted else super().physics(some)
        return rate

    def _base(self, configs: Sequence[Config], c: ConfigTable) -> PredictionBatch:
        """Return what history says, where it has the kind of hardware, else the prior.

        The prior, with all usual values of what is not stated, takes longer than history.
        """
        kinds = np.array([hardware_kind(x) for x in configs])
        if len(configs) and (kinds == kinds[0]).all():
            return self._of_kind(str(kinds[0]), configs, c)
        scores = PriorPredictor(catalogue=self.catalogue).score(configs, c)
        for kind in self.knowledge:
            rows = np.flatnonzero(kinds == kind)
            if len(rows):
                some = [configs[int(row)] for row in rows]
                scores = _laid_over(scores, rows, self._of_kind(kind, some, c.take(rows)))
        return scores

    def _of_kind(self, kind: str, configs: Sequence[Config], c: ConfigTable) -> PredictionBatch:
        if kind not in self.knowledge:
            return PriorPredictor(catalogue=self.catalogue).score(configs, c)
        with estimators.one_thread():
            return _learned(self.knowledge[kind], configs, c, self.catalogue)

    def covariance(self, configs: Sequence[Config], c: ConfigTable) -> Array:
        """Return the covariance of the errors of ln θ on one GPU model, shape (n, n).

        It takes into account what own runs on that GPU model taught.
        """
        kernel = self._error_kernel(configs, c, self._base(configs, c))
        correction = self._correction(c.gpu_key.of_row(0))
        return kernel.covariance(kernel) if correction is None else correction.covariance(kernel)

    def _blended(self, configs: Sequence[Config], c: ConfigTable, scores: PredictionBatch) -> PredictionBatch:
        """Rows on GPU models with own runs, moved towards what those measured."""
        gpus = np.array([x.gpu_model for x in configs])
        for gpu in np.unique(gpus):
            key = c.gpu_key.of_row(int(np.argmax(gpus == gpu)))
            correction, peaks = self._correction(key), self._peak_correction(key)
            if correction is None and peaks is None:
                continue
            rows = np.flatnonzero(gpus == gpu)
            some, places, found = [configs[int(row)] for row in rows], c.take(rows), _taken(scores, rows)
            if peaks is not None:
                found = peaks.applied(found, self._peak_kernel(some, places, found), places.memory)
            if correction is not None:
                found = correction.applied(found, self._error_kernel(some, places, found))
            scores = _laid_over(scores, rows, found)
        return scores

    def _correction(self, gpu_model: str) -> LocalCorrection | None:
        """Return the correction from own runs on the GPU model, or None without any.

        It is computed once for each GPU model.
        """
        if gpu_model not in self._corrections:
            scarce = (row for knowledge in self.knowledge.values() for row in knowledge.scarce)
            runs = (*self._on(gpu_model, scarce), *self.observations.gpus.get(gpu_model, ()))
            self._corrections[gpu_model] = self._learn(runs) if runs else None
        return self._corrections[gpu_model]

    def _on(self, gpu_model: str, rows: Iterable[Measurement]) -> list[Measurement]:
        """The rows of the GPU model, by the catalogue's name."""
        return [row for row in rows if self.catalogue.gpu_key(row.config.gpu_model) == gpu_model]

    @cached_property
    def _corrections(self) -> dict[str, LocalCorrection | None]:
        return {}

    def _peak_correction(self, gpu_model: str) -> PeakCorrection | None:
        """Return the correction from measured peaks on the GPU model, or None without any."""
        if gpu_model not in self._peak_corrections:
            scarce = (row for knowledge in self.knowledge.values() for row in knowledge.scarce_peaks)
            runs = (*self._on(gpu_model, scarce), *self.observations.peaks.get(gpu_model, ()))
            self._peak_corrections[gpu_model] = self._learn_peaks(runs) if runs else None
        return self._peak_corrections[gpu_model]

    @cached_property
    def _peak_corrections(self) -> dict[str, PeakCorrection | None]:
        return {}

    def _learn_peaks(self, runs: Sequence[Measurement]) -> PeakCorrection | None:
        configs = [run.config for run in runs]
        c = table(runs, self.catalogue.as_listed())  # imported shares are of no node's memory
        base, memory = self._base(configs, c), self._memory_model(configs)
        learnt_from = memory is not None and not memory.scarce(configs).all()
        kernel = self._peak_kernel(configs, c, base)
        return PeakCorrection.of(runs, c, base, kernel, by_physics=memory is None, learnt_from=learnt_from)

    def _memory_model(self, configs: Sequence[Config]) -> Regressor | None:
        knowledge = self.knowledge.get(hardware_kind(configs[0]))
        return knowledge.memory if knowledge else None

    def _peak_kernel(self, configs: Sequence[Config], c: ConfigTable, base: PredictionBatch) -> PeakKernel:
        """Configurations on one GPU model, by what errors of their peaks depend on."""
        memory = self._memory_model(configs)
        if memory is None:
            return PeakKernel.of(configs, c)
        variance = (np.log(base.memory_high / base.memory) / cost_model.Z_80) ** 2
        physics = self.knowledge[hardware_kind(configs[0])].own_peaks.by_physics(configs)
        of_kind = np.where(physics, np.nan, np.maximum(variance, gp_residual.MEMORY_SIGMA**2))
        return PeakKernel.of(configs, c, of_kind)

    def _learn(self, runs: Sequence[Measurement]) -> LocalCorrection:
        configs, c = [run.config for run in runs], table(runs, self.catalogue)
        base, knowledge = self._base(configs, c), self.knowledge.get(hardware_kind(configs[0]))
        learnt_from = knowledge is not None and not knowledge.rate.scarce(configs).all()
        kernel = self._error_kernel(configs, c, base)
        return LocalCorrection.of(runs, c, base, kernel, learnt_from=learnt_from)

    def _error_kernel(self, configs: Sequence[Config], c: ConfigTable, base: PredictionBatch) -> ErrorKernel:
        """The configurations, all on one GPU model, by what their errors depend on."""
        knowledge = self.knowledge.get(hardware_kind(configs[0]))
        variance = predicted_spread(base)
        if knowledge is None:
            return ErrorKernel.of(configs, c, variance, variance)
        return ErrorKernel.of(
            configs, c, variance, knowledge.of_gpu(configs, c), knowledge.rate.physics_.weights_
        )

    def _repeated(
        self, configs: Sequence[Config], c: ConfigTable, scores: PredictionBatch
    ) -> PredictionBatch:
        """Exact repeats: the median of what they measured, and whether they ran."""
        changed = {name: getattr(scores, name).copy() for name in _ARRAYS}
        source = list(scores.source)
        for row, config in enumerate(configs):
            repeat = self.observations.repeat(config, c, row)
            if repeat is None:
                continue
            if repeat.ran is not None:
                changed["p_valid"][row] = FAILED_P_VALID + repeat.ran * (REPEATED_P_VALID - FAILED_P_VALID)
            if repeat.rate:
                factor = float(np.exp(cost_model.Z_80 * gp_residual.SIGMA))
                _set(changed, row, "rate", repeat.rate, factor)
                source[row] = Source.EXACT
            if repeat.memory:
                factor = float(np.exp(cost_model.Z_80 * gp_residual.MEMORY_SIGMA))
                _set(changed, row, "memory", repeat.memory, factor)
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


def _laid_over(scores: PredictionBatch, rows: Array, some: PredictionBatch) -> PredictionBatch:
    """The scores with the given rows replaced."""
    source = list(scores.source)
    for place, row in enumerate(rows):
        source[row] = some.source[place]
    arrays = {name: _put(getattr(scores, name), rows, getattr(some, name)) for name in (*_ARRAYS, "outside")}
    return replace(scores, source=source, **arrays)


def _taken(scores: PredictionBatch, rows: Array) -> PredictionBatch:
    """The given rows of the scores."""
    source = [scores.source[int(row)] for row in rows]
    return replace(
        scores, source=source, **{name: getattr(scores, name)[rows] for name in (*_ARRAYS, "outside")}
    )


def _learned(
    knowledge: FittedModel, configs: Sequence[Config], c: ConfigTable, catalogue: Catalogue
) -> PredictionBatch:
    X = features.matrix(configs, c, knowledge.vocabulary)
    seen = knowledge.seen
    unseen_model, unseen_gpu = seen.unseen_model(c), seen.unseen_gpu(configs, c)
    outside = seen.outside(configs, c)
    rate = knowledge.rate.predict(configs, c, X, unseen_model, unseen_gpu)
    width = np.exp(_rate_width(knowledge, configs, c, unseen_model, unseen_gpu))
    memory, memory_width = cost_model.memory(c).total, np.full(len(configs), np.exp(MEMORY_WIDTH))
    if knowledge.memory is not None:
        memory = knowledge.memory.predict(configs, c, X, unseen_model, unseen_gpu)
        memory_width = np.exp(knowledge.memory.width(configs, unseen_model, unseen_gpu))
    suspected = memory
    by_physics = knowledge.own_peaks.by_physics(configs) & (knowledge.memory is not None)
    foreign = knowledge.own_peaks.foreign(configs)
    if by_physics.any():
        # A stack that physics follows line by line has other errors than other stacks. The history of our
        # trainer's runs, once there is some, still makes for caution, and that of others for software that
        # nobody measured.
        memory = np.where(by_physics, cost_model.memory(c).total, memory)
        wary = foreign | bool(knowledge.own_peaks.models)
        suspected = np.where(wary, np.maximum(memory, suspected), memory)
        memory_width = np.where(foreign, np.maximum(memory_width, np.exp(MEMORY_WIDTH)), memory_width)
    memory = peak_memory.with_paged(c, memory)
    low, high, fits = memory / memory_width, memory * memory_width, p_fits(c)
    strange = np.flatnonzero(foreign)
    usual = peaks_of_usual([configs[int(row)] for row in strange], c.take(strange), catalogue)
    for place, (peaks, fitting) in usual.items():
        row = strange[place]
        low[row] = min(low[row], peaks.min() / memory_width[row])
        high[row] = max(high[row], peaks.max() * memory_width[row])
        fits[row] = min(fits[row], fitting.mean())
    unfamiliar = outside | unseen_model | knowledge.rate.scarce(configs)
    doubtful = unfamiliar | foreign | seen.beyond_reach(configs, c)
    least = suspected * cost_model.needed(c) / cost_model.memory(c).total  # a full GPU gives the rest back
    doubted = least / np.where(seen.untried_setting(configs, c), 1.0, PREDICTION_MARGIN)
    p_valid = run_probability(knowledge, configs, c, fits, np.where(doubtful, doubted, 0.0), foreign)
    return PredictionBatch(
        p_valid=np.where(unfamiliar, reassured(p_valid, suspected / c.memory), p_valid),
        rate=rate,
        rate_low=rate / width,
        rate_high=rate * width,
        memory=memory,
        memory_low=low,
        memory_high=high,
        source=[Source.MODEL] * len(configs),
        outside=outside,
    )


def _rate_width(
    knowledge: FittedModel, configs: Sequence[Config], c: ConfigTable, unseen_model: Mask, unseen_gpu: Mask
) -> Array:
    """Half-widths of ln(rate), shape (n,).

    Software that history hardly has adds to a step as much that is unknown as all that physics leaves out.
    """
    width = knowledge.rate.width(configs, unseen_model, unseen_gpu)
    of_physics = np.maximum(width, cost_model.Z_80 * cost_model.spread(c))
    return np.where(knowledge.seen.foreign(configs), of_physics, width)
