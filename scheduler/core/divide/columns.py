"""Columns of a program that gives each job one bundle at most, within limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One column is one bundle of one job; those of a job stand side by side.

    costs, jobs, gpus: shape (columns,): what choosing it costs beside leaving the job idle (negative: a
    gain), the row of its job, its GPUs. uses: shape (limits, columns): the GPUs that count against each
    limit, such as those of a type. capacity: shape (limits,), GPUs within each limit.
    """

    costs: Floats
    jobs: Ints
    gpus: Ints
    uses: Ints
    capacity: Ints

    @property
    def count(self) -> int:
        return len(self.costs)

    @property
    def starts(self) -> Ints:
        """Where the columns of each job begin; jobs without any are passed over."""
        return np.flatnonzero(np.diff(self.jobs, prepend=-1))

    def where(self, kept: Mask) -> Columns:
        """Those columns alone."""
        return Columns(
            costs=self.costs[kept],
            jobs=self.jobs[kept],
            gpus=self.gpus[kept],
            uses=self.uses[:, kept],
            capacity=self.capacity,
        )

    def sample(self, count: int) -> Columns:
        """Some jobs, evenly chosen, with about `count` columns and their part of the GPUs."""
        every = max(self.count // count, 1)
        return replace(self.where(self.jobs % every == 0), capacity=self.capacity // every)


def total(columns: Columns, chosen: Sequence[int]) -> float:
    """The cost of a choice beside leaving everybody idle."""
    return float(columns.costs[list(chosen)].sum())
