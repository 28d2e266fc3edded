"""Measured rows as one value, and how to leave whole configurations, models or GPUs out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config

Rows = NDArray[np.intp]
Fold = tuple[Rows, Rows]  # (to learn from, left out)

FOLDS = 5
ENOUGH_OF_A_GPU = 20  # rows before leaving a GPU out says how well others foretell it


@dataclass(frozen=True, slots=True)
class Dataset:
    """n configurations with what estimators see of them, X of shape (n, k), and a measured quantity.

    `hashes` are the configurations' identities, made once: each takes as long as fitting it to a tree.
    """

    configs: Sequence[Config]
    hashes: Sequence[str]
    c: ConfigTable
    X: Array
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Rows) -> Dataset:
        """The chosen rows."""
        configs, hashes = [self.configs[row] for row in rows], [self.hashes[row] for row in rows]
        return Dataset(configs, hashes, self.c.take(rows), self.X[rows], self.values[rows])


def importance(data: Dataset) -> Array:
    """Weights of the rows: n repeats count as much as √n rows, and of GPUs of which n were measured as well.

    Else the GPU with most of the history speaks for all, and a handful of runs on a new one changes nothing.
    """
    repeats, gpus = Counter(data.hashes), Counter(x.gpu_model for x in data.configs)
    pairs = zip(data.hashes, data.configs, strict=True)
    return np.array([(repeats[name] * gpus[x.gpu_model]) ** -0.5 for name, x in pairs])


def by_model(configs: Sequence[Config]) -> Iterator[Fold]:
    """Folds that never part the rows of a model."""
    return grouped([x.model_name for x in configs])


def by_gpu(configs: Sequence[Config]) -> Iterator[Fold]:
    """Each GPU model left out in turn; those with few rows are never, and nothing if no other is left."""
    names = np.array([x.gpu_model for x in configs])
    counts = Counter(names.tolist())
    for name in sorted(counts):
        rest = np.flatnonzero(names != name)
        if counts[name] >= ENOUGH_OF_A_GPU and len(rest) >= ENOUGH_OF_A_GPU:
            yield rest, np.flatnonzero(names == name)


def grouped(groups: Sequence[str], parts: int = FOLDS) -> Iterator[Fold]:
    """Folds that never part a group; none if there is but one."""
    from sklearn.model_selection import GroupKFold  # only trainings need it, and it takes a second

    folds = min(parts, len(set(groups)))
    if folds >= 2:
        yield from GroupKFold(folds, shuffle=True, random_state=0).split(np.zeros(len(groups)), None, groups)
