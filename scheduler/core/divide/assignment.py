"""Assignment of at most one bundle a job within limits on GPUs, at least cost."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from scheduler.core.divide.columns import Columns, total
from scheduler.core.divide.exact import by_program, by_table, table_cells
from scheduler.core.divide.relaxation import relax

TABLE_CELLS = 5_000_000  # above, a program is quicker
GAP = 1e-4  # so close to the best possible cost is the choice, as a share of it
CORE, WIDER = 0.003, 4.0  # of the largest gain: columns so close to the best of their job are tried first
PROVEN = 10_000  # columns; above, a choice is enough that a wider search betters by the gap at most


def assign(columns: Columns, table_limit: int = TABLE_CELLS) -> list[int]:
    """The chosen columns, in order.

    Exact for few jobs on few GPUs. Else it costs at most the gap more than the best, and with very many
    columns hardly more; greedy if the solver gives up.
    """
    able = (columns.costs < 0) & (columns.uses <= columns.capacity[:, None]).all(axis=0)
    useful = columns.where(able)
    if not useful.count:
        return []
    found = by_table(useful) if table_cells(useful) <= table_limit else _close(useful)
    places = np.flatnonzero(able)
    return [int(places[column]) for column in found]


def _close(columns: Columns) -> list[int]:
    """A choice among columns that are nearly the best of their job.

    They are so at prices that the GPUs could have. A column that is dearer for its job by more than the
    choice lies above the bound is in no better one.
    """
    relaxed = relax(columns)
    gap, within = GAP * abs(relaxed.bound), CORE * -float(columns.costs.min())
    best, cost = list[int](), 0.0
    while True:
        found = by_program(columns, relaxed, within, gap)
        before = cost
        if found.chosen and total(columns, found.chosen) < cost:
            best, cost = found.chosen, total(columns, found.chosen)
        above = cost - relaxed.bound
        enough = best and columns.count > PROVEN and before - cost <= gap
        if not found.in_time or above <= max(within, gap) or enough:
            return _Taken(columns, best).filled() if best else greedy(columns)
        within = min(WIDER * within, above)


def greedy(columns: Columns) -> list[int]:
    """Give each job its smallest bundle, then the upgrades that gain most per GPU.

    The smallest bundles are given in the order of rows.
    """
    taken = _Taken(columns)
    for column in np.lexsort((columns.costs, columns.gpus, columns.jobs)):
        if columns.costs[column] < 0:
            taken.take_if_fits(int(column))
    options: dict[int, list[int]] = {}
    for column, job in enumerate(columns.jobs):
        options.setdefault(int(job), []).append(column)
    heap = [step for job, held in taken.by_job.items() for step in _upgrades(columns, held, options[job])]
    heapify(heap)
    while heap:
        _, column, held = heappop(heap)
        job = int(columns.jobs[column])
        if taken.by_job.get(job) == held and taken.swap_if_fits(held, column):
            for step in _upgrades(columns, column, options[job]):
                heappush(heap, step)
    return taken.filled()


def _upgrades(columns: Columns, held: int, options: Sequence[int]) -> list[tuple[float, int, int]]:
    """Return (minus the gain per further GPU, column, held) for each better column."""
    better = [column for column in options if columns.costs[column] < columns.costs[held]]
    return [
        (
            float(columns.costs[column] - columns.costs[held])
            / max(1, int(columns.gpus[column] - columns.gpus[held])),
            column,
            held,
        )
        for column in better
    ]


class _Taken:
    """Columns chosen so far and the GPUs left within each limit."""

    def __init__(self, columns: Columns, chosen: Sequence[int] = ()) -> None:
        self.columns, taken = columns, list(chosen)
        self.left = columns.capacity - columns.uses[:, taken].sum(axis=1)
        self.by_job: dict[int, int] = dict(zip(columns.jobs[taken].tolist(), taken, strict=True))

    def take_if_fits(self, column: int) -> bool:
        job, uses = int(self.columns.jobs[column]), self.columns.uses[:, column]
        if job in self.by_job or (uses > self.left).any():
            return False
        self.by_job[job] = column
        self.left -= uses
        return True

    def swap_if_fits(self, held: int, column: int) -> bool:
        job = int(self.columns.jobs[held])
        del self.by_job[job]
        self.left += self.columns.uses[:, held]
        if self.take_if_fits(column):
            return True
        self.take_if_fits(held)
        return False

    def filled(self) -> list[int]:
        """Return the choice after giving jobs left over whatever still fits and gains.

        The largest gain goes first.
        """
        columns = self.columns
        gains = (columns.costs < 0) & ~np.isin(columns.jobs, list(self.by_job))
        fits = np.flatnonzero(gains & (columns.uses <= self.left[:, None]).all(axis=0))
        for column in fits[np.lexsort((columns.gpus[fits], columns.costs[fits]))]:
            self.take_if_fits(int(column))
        return sorted(self.by_job.values())
