"""Measured rows as one value, with ways to split them.

A split leaves out whole configurations, models or GPUs.
"""

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
ENOUGH_OF_A_GPU = 20  # rows before leaving a GPU out says how well others predict it


@dataclass(frozen=True, slots=True)
class Dataset:
    """The features of n configurations, X of shape (n, k), and a measured quantity.

    `hashes` are the configurations' identities, computed once because each takes as long as fitting
    its row to a tree.
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
    """Return the weights of the rows.

    A configuration with n repeats counts as much as √n rows, and so does a GPU with n rows.
    Otherwise the GPU with most of the history would speak for all, and a handful of runs on a new
    one would change nothing.
    """
    repeats, gpus = Counter(data.hashes), Counter(x.gpu_model for x in data.configs)
    pairs = zip(data.hashes, data.configs, strict=True)
    return np.array([(repeats[name] * gpus[x.gpu_model]) ** -0.5 for name, x in pairs])


def by_model(configs: Sequence[Config]) -> Iterator[Fold]:
    """Folds that never part the rows of a model."""
    return grouped([x.model_name for x in configs])


def by_gpu(configs: Sequence[Config]) -> Iterator[Fold]:
    """Yield folds that leave out one GPU model in turn.

    GPU models with few rows are never left out, and none is if too few rows of others remain.
    """
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
