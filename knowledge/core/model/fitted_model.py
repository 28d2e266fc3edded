"""Models fitted to history on top of physics.

They predict rates, memory and validity of one kind of hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.peak_memory import PeakMemory
from knowledge.core.analytic.step_time import StepTime
from knowledge.core.data import splits
from knowledge.core.data.measurement import OWN, Measurement, known_rows, table
from knowledge.core.data.splits import Dataset
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config
from knowledge.core.model import estimators, features
from knowledge.core.model.estimators import Ensemble, ProbabilityMap
from knowledge.core.model.own_peaks import OwnPeaks
from knowledge.core.model.regressor import Regressor, interval_kind
from knowledge.core.model.training_support import TrainingSupport

ENOUGH_ROWS = 40  # of the kind (GPU, cpu); below it the prior answers


def hardware_kind(config: Config) -> str:
    """GPU and CPU rows never teach each other."""
    return "cpu" if config.gpu_model == "cpu" else "gpu"


@dataclass(frozen=True, slots=True)
class Validity:
    """A calibrated classifier of "does it run"."""

    ensemble: Ensemble
    calibration: ProbabilityMap


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel:
    """All that was learnt from the rows of one kind.

    scarce: measured rows of GPUs with a handful of them; on these they count as own runs do.
    scarce_peaks: the same of rows with a peak, also of software with a handful, or all of them where they are
    too few for `memory`.
    own_peaks: the peaks of our trainer that `memory` predicts.
    """

    rows: int
    vocabulary: dict[str, dict[str, float]]
    rate: Regressor
    memory: Regressor | None
    validity: Validity | None
    seen: TrainingSupport
    scarce: tuple[Measurement, ...] = ()
    scarce_peaks: tuple[Measurement, ...] = ()
    own_peaks: OwnPeaks = field(default_factory=OwnPeaks)

    def of_gpu(self, configs: Sequence[Config], c: ConfigTable) -> Array:
        """Return the variance of ln θ that comes from the GPU being hardly known.

        Shape (n,); it is 0 where the GPU is known.
        """
        seen_model = np.zeros(len(configs), dtype=bool)
        width = self.rate.width(configs, seen_model, self.seen.unseen_gpu(configs, c))
        kinds, gpus = [interval_kind(x) for x in configs], [x.gpu_model for x in configs]
        usual = self.rate.widths_.look_up(kinds, gpus)
        excess: Array = np.maximum(width**2 - usual**2, 0.0) / cost_model.Z_80**2
        return excess


def fit_model(rows: Sequence[Measurement], kind: str, catalogue: Catalogue) -> FittedModel | None:
    """Everything that the rows of the kind teach; None with too few measured ones."""
    mine = known_rows([row for row in rows if hardware_kind(row.config) == kind], catalogue)
    c = table(mine, catalogue)
    measured, of_measured = _chosen(mine, c, lambda row: row.measured)
    if len(measured) < ENOUGH_ROWS:
        return None
    peaks = [row for row in mine if row.has_peak]
    of_peaks = [row.config for row in peaks]
    words = features.vocabulary([row.config for row in measured])
    with estimators.one_thread():
        memory, own_peaks = _learn_memory(mine, c, words)
        rate = _learn_rate(measured, of_measured, words)
        return FittedModel(
            rows=len(measured),
            vocabulary=words,
            rate=rate,
            memory=memory,
            validity=_learn_validity(mine, c, memory),
            seen=TrainingSupport.of([row.config for row in measured], of_measured),
            scarce=_imported(measured, _scarce(measured, rate)),
            scarce_peaks=_imported(peaks, _scarce(peaks, memory) | own_peaks.foreign(of_peaks)),
            own_peaks=own_peaks,
        )


def _scarce(rows: Sequence[Measurement], model: Regressor | None) -> Mask:
    """Return the rows of GPUs with a handful of them, (n,)."""
    if model is None:
        return np.ones(len(rows), dtype=bool)
    return model.scarce([row.config for row in rows])


def _imported(rows: Sequence[Measurement], few: Mask) -> tuple[Measurement, ...]:
    """The few rows but own runs, which are shown to predictors anyway."""
    return tuple(row for row, is_few in zip(rows, few, strict=True) if is_few and row.source != OWN)


def pressure(memory: Regressor | None, c: ConfigTable) -> Array:
    """Return ln(peak / capacity) of one GPU by physics, shape (n,).

    The physics is fitted where peaks were measured.
    """
    peak = cost_model.memory(c).total if memory is None else memory.physics_.value(c)
    found: Array = np.log(peak / c.memory)
    return found


def _chosen(
    rows: Sequence[Measurement], c: ConfigTable, wanted: Callable[[Measurement], bool]
) -> tuple[list[Measurement], ConfigTable]:
    """The wanted rows with their columns."""
    kept = [wanted(row) for row in rows]
    return list(compress(rows, kept)), c.take(np.array(kept, dtype=bool))


def _learn_rate(rows: Sequence[Measurement], c: ConfigTable, words: dict[str, dict[str, float]]) -> Regressor:
    rates = np.array([row.tokens_per_second for row in rows], dtype=float)
    data = _dataset(rows, c, words, rates)
    return Regressor(StepTime).fit(data)


def _learn_memory(
    rows: Sequence[Measurement], c: ConfigTable, words: dict[str, dict[str, float]]
) -> tuple[Regressor | None, OwnPeaks]:
    usable, c = _chosen(rows, c, lambda row: row.has_peak)
    if len(usable) < ENOUGH_ROWS:
        return None, OwnPeaks()
    shares = np.array([row.peak_memory_fraction for row in usable], dtype=float)
    data = _dataset(usable, c, words, shares * c.memory)
    memory = Regressor(PeakMemory).fit(data)
    return memory, OwnPeaks.of(data, memory)


def _dataset(
    rows: Sequence[Measurement], c: ConfigTable, words: dict[str, dict[str, float]], measured: Array
) -> Dataset:
    configs = [row.config for row in rows]
    return Dataset(configs, c.identities(configs), c, features.matrix(configs, c, words), measured)


def _learn_validity(rows: Sequence[Measurement], c: ConfigTable, memory: Regressor | None) -> Validity | None:
    """Fit a classifier on sources that publish their failures.

    Refused rows are left to the launch rules.
    """
    usable, c = _chosen(rows, c, lambda row: row.learn_validity and row.status in ("ok", "oom", "failed"))
    happened = np.array([row.status == "ok" for row in usable], dtype=int)
    if len(usable) < ENOUGH_ROWS or min(happened.sum(), len(usable) - happened.sum()) < splits.FOLDS:
        return None
    configs = [row.config for row in usable]
    X = features.validity_matrix(configs, c, pressure(memory, c))
    groups = c.identities(configs)
    raw = estimators.out_of_fold(estimators.classifiers, X, happened, groups)
    if not np.isfinite(raw).all():
        return None
    return Validity(Ensemble(estimators.classifiers).fit(X, happened), ProbabilityMap().fit(raw, happened))
