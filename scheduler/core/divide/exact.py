"""Exact choices of columns: by a table of what is left, or by an integer program.

scipy is imported where it solves: it takes a third of a second, and few policies do.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from scheduler.core.divide.columns import Columns, Ints
from scheduler.core.divide.relaxation import Relaxation

TIME_LIMIT_S = 5.0
NOTHING = -1  # in place of a column


class Solved(NamedTuple):
    """A choice; None: there is none, or none was found in time."""

    chosen: list[int] | None
    in_time: bool = True


def table_cells(columns: Columns) -> int:
    """How many figures the table of these columns would have."""
    return columns.count * prod(int(gpus) + 1 for gpus in columns.capacity)


def by_table(columns: Columns) -> list[int]:
    """The best choice, by dynamic programming over GPUs that are given away.

    A cell is the least cost of the jobs so far with so many GPUs at most.
    """
    shape = tuple(int(gpus) + 1 for gpus in columns.capacity)
    costs, uses = columns.costs.tolist(), columns.uses.T.tolist()
    least, choices = np.zeros(shape), []
    for start, end in pairwise([*columns.starts.tolist(), columns.count]):
        before, least = least, least.copy()
        choices.append(np.full(shape, NOTHING, np.int32))
        for column in range(start, end):
            with_it = tuple(slice(used, None) for used in uses[column])
            without = tuple(slice(size - used) for used, size in zip(uses[column], shape, strict=True))
            found = before[without] + costs[column]
            better = found < least[with_it]
            np.copyto(least[with_it], found, where=better)
            np.copyto(choices[-1][with_it], column, where=better)
    left, chosen = columns.capacity, []
    for choice in reversed(choices):
        column = int(choice[tuple(left)])
        if column != NOTHING:
            chosen.append(column)
            left = left - columns.uses[:, column]
    return sorted(chosen)


def by_program(columns: Columns, relaxed: Relaxation, within: float, gap: float) -> Solved:
    """The best choice of columns at most so much dearer than the best of their job.

    A job for which that leaves one column has it. gap: how much the choice may cost above the best.
    """
    near = np.flatnonzero(relaxed.excess <= within)
    alone = np.bincount(columns.jobs[near])[columns.jobs[near]] == 1
    settled = near[alone & (relaxed.idle[near] > within)]
    others = np.setdiff1d(near, settled, assume_unique=True)
    left = columns.capacity - columns.uses[:, settled].sum(axis=1)
    if (left < 0).any() or not len(others):
        return Solved(None if (left < 0).any() else settled.tolist())
    about = abs(relaxed.bound - columns.costs[settled].sum())
    found = _solve(columns, others, left, gap / max(about, gap))
    return (
        found if found.chosen is None else Solved(sorted([*settled.tolist(), *found.chosen]), found.in_time)
    )


def _solve(columns: Columns, among: Ints, left: Ints, gap: float) -> Solved:
    """The best of some columns for what is left, by a mixed integer program.

    `gap` is a share. Its variables are numbers of jobs: those to which the columns offer the same are alike.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    alike = groups_alike(columns, among)
    first = np.concatenate([jobs[0] for jobs in alike])
    of_group = np.repeat(np.arange(len(alike)), [len(jobs[0]) for jobs in alike])
    sizes = np.array([len(jobs) for jobs in alike], float)
    rows = csr_array((np.ones(len(first)), (of_group, np.arange(len(first)))))
    uses = csr_array(columns.uses[:, first].astype(float))
    found = milp(
        columns.costs[first],
        integrality=np.ones(len(first)),
        bounds=Bounds(0, sizes[of_group]),
        constraints=[LinearConstraint(rows, ub=sizes), LinearConstraint(uses, ub=left.astype(float))],
        options={"time_limit": TIME_LIMIT_S, "mip_rel_gap": gap},
    )
    if found.x is None:
        return Solved(None, in_time=False)
    numbers = iter(np.rint(found.x).astype(int).tolist())
    chosen: list[int] = []
    for jobs in alike:
        waiting = iter(jobs)
        for place in range(len(jobs[0])):
            chosen += [int(job[place]) for job in islice(waiting, next(numbers))]
    return Solved(chosen, in_time=found.status == 0)


def groups_alike(columns: Columns, among: Ints) -> list[list[Ints]]:
    """Groups of jobs with the same costs and uses; of each job its columns."""
    offers = list(zip(columns.costs[among].tolist(), *columns.uses[:, among].tolist(), strict=True))
    starts = np.flatnonzero(np.diff(columns.jobs[among], prepend=-1)).tolist()
    groups: dict[tuple[tuple[float, ...], ...], list[Ints]] = defaultdict(list)
    for start, end in pairwise([*starts, len(among)]):
        groups[tuple(offers[start:end])].append(among[start:end])
    return list(groups.values())
