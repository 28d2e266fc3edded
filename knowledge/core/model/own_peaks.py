"""The peaks for which history is believed rather than physics.

Physics follows our trainer line by line, and history has mostly other software. So history is believed only
where it predicted runs of our trainer better that it had not seen: other configurations of the same models
and GPUs, other models, other GPUs. Of software that history does not have physics answers as well: what
trees and weights learn of one stack makes the peaks of another worse (docs/measurements/accuracy.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.stack import is_fsdp, is_ours
from knowledge.core.data import splits
from knowledge.core.data.splits import Dataset, Fold
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config
from knowledge.core.model.estimators import QUICK_TREES
from knowledge.core.model.regressor import Regressor
from knowledge.core.model.training_support import foreign, known_software

ENOUGH_OF_OURS = 10  # peaks before history is asked at all
ENOUGH_LEFT = 5  # of them to learn from while others are left out
LEFT_OUT = CONFIGURATION, MODEL, GPU = "configuration", "model", "gpu"


@dataclass(frozen=True, slots=True)
class OwnPeaks:
    """Models, GPUs and ways to train of our trainer's measured peaks.

    better: what was left out when history was nearer than physics by more than a standard error.
    software: families of which enough peaks were measured; empty where nobody asked.
    """

    models: frozenset[str] = frozenset()
    gpus: frozenset[str] = frozenset()
    ways: frozenset[str] = frozenset()
    better: frozenset[str] = frozenset()
    software: frozenset[str] = frozenset()

    @classmethod
    def of(cls, data: Dataset, regressor: Regressor) -> OwnPeaks:
        """data: all rows with a peak. regressor: of the kind that learns from them."""
        ours = np.array([is_ours(x) for x in data.configs], dtype=bool)
        software = known_software(data.configs)
        if ours.sum() < ENOUGH_OF_OURS:
            return cls(software=software)
        some = [x for x, mine in zip(data.configs, ours, strict=True) if mine]
        groups = {
            CONFIGURATION: list(data.hashes),
            MODEL: [x.model_name for x in data.configs],
            GPU: [x.gpu_model for x in data.configs],
        }
        return cls(
            models=frozenset(x.model_name for x in some),
            gpus=frozenset(x.gpu_model for x in some),
            ways=frozenset(map(way_of, some)),
            better=frozenset(
                what for what, names in groups.items() if _is_better(_gains(data, regressor, names, ours))
            ),
            software=software,
        )

    def by_physics(self, configs: Sequence[Config]) -> Mask:
        """Return the rows whose peaks physics predicts alone, shape (n,).

        Never of our trainer where GPUs share a model, until such peaks of it were measured.
        """
        return np.array([self._is_physics(x) for x in configs], dtype=bool) | self.foreign(configs)

    def foreign(self, configs: Sequence[Config]) -> Mask:
        """Return the rows of software that history hardly has, shape (n,)."""
        return foreign(configs, self.software) & bool(self.software)

    def _is_physics(self, config: Config) -> bool:
        return is_ours(config) and not is_fsdp(config) and not self._is_believed(config)

    def _is_believed(self, config: Config) -> bool:
        required = {CONFIGURATION}
        required |= set() if config.model_name in self.models else {MODEL}
        required |= set() if config.gpu_model in self.gpus else {GPU}
        return way_of(config) in self.ways and required <= self.better


def way_of(config: Config) -> str:
    """Tuning and width: peaks of one say little of another's."""
    return f"{config.tuning} {'float32' if config.precision == 'float32' else '16 bits'}"


def _gains(data: Dataset, regressor: Regressor, groups: Sequence[str], ours: Mask) -> Mapping[str, Array]:
    """Return by how much history is nearer in ln(peak) than physics.

    By group of our rows that was left out.
    """
    wrong, correction = regressor.out_of_fold(data, _folds(groups, ours), QUICK_TREES)
    stated = np.minimum(cost_model.memory(data.c).total, data.c.memory)
    gains = np.abs(np.log(data.values / stated)) - np.abs(wrong - correction)
    names = np.array(groups)
    known = ours & np.isfinite(gains)
    return {name: gains[known & (names == name)] for name in np.unique(names[known])}


def _folds(groups: Sequence[str], ours: Mask) -> Iterator[Fold]:
    """Yield folds that leave out whole groups of our rows, with enough others left."""
    rows, theirs = np.flatnonzero(ours), np.flatnonzero(~ours)
    for train, test in splits.grouped([groups[int(row)] for row in rows]):
        if len(train) >= ENOUGH_LEFT:
            yield np.union1d(theirs, rows[train]), rows[test]


def _is_better(gains: Mapping[str, Array]) -> bool:
    """Is the mean over groups above its standard error?

    Source: the rule of one standard error, Breiman et al. 1984.
    """
    means = np.array([values.mean() for values in gains.values()])
    if len(means) < 2:
        return False
    return bool(means.mean() > means.std(ddof=1) / np.sqrt(len(means)))
