"""Assignment of at most one bundle a job within limits on GPUs, at least cost.

scipy is imported where it solves: it takes a third of a second, and few policies do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

MILP_COLUMNS = 10_000  # above, the LP relaxation is solved and rounded: within 0.04 % on such sizes
TIME_LIMIT_S = 5.0
GAP = 1e-4

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One column is one bundle of one job.

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


def assign(columns: Columns, milp_columns: int = MILP_COLUMNS) -> list[int]:
    """The chosen columns, in order.

    Mixed integer program up to `milp_columns`, rounded linear program above, greedy if the solver gives up.
    """
    if not columns.count:
        return []
    integer = columns.count <= milp_columns
    shares = _solve(columns, integer=integer)
    return greedy(columns) if shares is None else _round(columns, shares)


def total(columns: Columns, chosen: Sequence[int]) -> float:
    """The cost of a choice beside leaving everybody idle."""
    return float(columns.costs[list(chosen)].sum())


def _solve(columns: Columns, *, integer: bool) -> Floats | None:
    from scipy.optimize import Bounds, milp

    found = milp(
        columns.costs,
        integrality=np.full(columns.count, int(integer)),
        bounds=Bounds(0, 1),
        constraints=_limits(columns),
        options={"time_limit": TIME_LIMIT_S, "mip_rel_gap": GAP},
    )
    return None if found.x is None else np.asarray(found.x)


def _limits(columns: Columns) -> list[LinearConstraint]:
    from scipy.optimize import LinearConstraint
    from scipy.sparse import csr_array

    every = np.arange(columns.count)
    jobs = csr_array(
        (np.ones(columns.count), (columns.jobs, every)), shape=(columns.jobs.max() + 1, columns.count)
    )
    uses = csr_array(columns.uses.astype(float))
    return [LinearConstraint(jobs, ub=1.0), LinearConstraint(uses, ub=columns.capacity.astype(float))]


def _round(columns: Columns, shares: Floats) -> list[int]:
    """Columns in the order of their shares, as long as they fit."""
    taken = _Taken(columns)
    for column in np.lexsort((columns.costs, -shares)):
        if shares[column] < GAP:
            break
        taken.take_if_fits(int(column))
    return taken.filled()


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

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.left = columns.capacity.copy()
        self.by_job: dict[int, int] = {}

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
        gains, placed = self.columns.costs < 0, np.isin(self.columns.jobs, list(self.by_job))
        left = np.flatnonzero(gains & ~placed)
        for column in left[np.lexsort((self.columns.gpus[left], self.columns.costs[left]))]:
            self.take_if_fits(int(column))
        return sorted(self.by_job.values())
