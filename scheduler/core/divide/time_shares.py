"""Shares of time on each GPU model.

They make the worst-off job as well off as possible.

Source: Narayanan et al., Gavel, OSDI 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain.types import Option
from scheduler.core.divide.capacity import Capacity
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import JobInfo

Floats = NDArray[np.float64]
ITERATIONS = 20_000  # of the simplex method; a limit in time would find other shares on a busy machine
SUM_WEIGHT = 1e-4  # breaks ties among max-min solutions towards more throughput in all


class TimeShares(NamedTuple):
    """Shares of time of each job (id) on each GPU model.

    solved: else all have equal shares.
    """

    of_jobs: dict[str, dict[str, float]]
    solved: bool


def max_min(
    rates: Floats, gpus: Floats, uses: Floats, limits: Floats, usable: Floats, weights: Floats
) -> tuple[Floats, bool]:
    """Return the time shares X that maximise the least weighted normalised throughput.

    X has shape (jobs, types). A throughput counts times the GPUs that it takes, so that of two
    jobs that gain the same the smaller one gets more time. Jobs that are alike in all of that have equal
    shares, of which there is one solution if there is any, and share a column. If the program takes too many
    steps, all get equal shares and the second value is False.
    rates: (jobs, types), throughput of each job alone on each type, 0 where it cannot run.
    gpus: (jobs, types), the GPUs that it takes there.
    uses: (limits, jobs, types), those of them that count against each limit.
    limits: (limits,), GPUs within each.
    usable: (jobs, types), the GPUs of each type that a job could be given.
    weights: (jobs,).
    """
    from scipy.optimize import linprog  # this policy alone needs it, and it takes a third of a second
    from scipy.sparse import coo_array

    count, kinds = rates.shape
    equal = np.minimum(usable / count, 1.0)
    equal = equal / np.maximum(equal.sum(axis=1, keepdims=True), 1.0)
    fair = (rates * equal).sum(axis=1)
    of_jobs = np.concatenate([rates, gpus, *uses, usable, weights[:, None]], axis=1)
    _, first, group = np.unique(of_jobs, axis=0, return_index=True, return_inverse=True)
    group, alike = group.ravel(), np.bincount(group.ravel()).astype(float)
    normal = (rates * gpus / np.where(fair > 0, fair * weights, 1.0)[:, None])[first]
    uses_of, able, groups = uses[:, first] * alike[:, None], fair[first] > 0, len(first)
    row = np.repeat(np.arange(groups), kinds)
    column = np.arange(groups * kinds)
    worst = np.full(groups, groups * kinds)
    # Rows: worst - normal X <= 0 and sum of X <= 1 for each kind; sum of uses X <= limit for each limit.
    limit, used = uses_of.reshape(len(limits), -1).nonzero()
    matrix = coo_array(
        (
            np.concatenate([-normal.ravel(), 1.0 * able, np.ones(groups * kinds), uses_of[uses_of != 0]]),
            (
                np.concatenate([row, np.arange(groups), groups + row, 2 * groups + limit]),
                np.concatenate([column, worst, column, used]),
            ),
        ),
        shape=(2 * groups + len(limits), groups * kinds + 1),
    )
    bound = np.concatenate([np.zeros(groups), np.ones(groups), limits])
    gain = np.append(-SUM_WEIGHT / count * (alike[:, None] * normal).ravel(), -1.0)
    bounds = [(0.0, 1.0 if rate > 0 else 0.0) for rate in rates[first].ravel()] + [(0.0, None)]
    found = linprog(
        gain,
        A_ub=matrix.tocsr(),
        b_ub=bound,
        bounds=bounds,
        method="highs-ds",
        options={"maxiter": ITERATIONS},
    )
    if found.status != 0:
        return equal, False
    return np.asarray(found.x[:-1]).reshape(groups, kinds)[group], True


def time_shares(
    jobs: Sequence[JobInfo], options: Mapping[str, Mapping[str, Option]], supply: Capacity
) -> TimeShares:
    """The share of time of each job (id) on each GPU model.

    options: of each job (id), one for each GPU model.
    """
    models, limits = supply.models, list(supply.gpus)
    if not jobs or not models:
        return TimeShares({}, solved=True)
    rates, gpus, usable = np.zeros((3, len(jobs), len(models)))
    uses = np.zeros((len(limits), len(jobs), len(models)))
    for row, job in enumerate(jobs):
        found = options[job.id]
        tuning = next((option.config.tuning for option in found.values()), "")
        usable[row] = [supply.usable(model, tuning) for model in models]
        for (model, option), rate in zip(found.items(), known_rates(list(found.values())), strict=True):
            column = models.index(model)
            rates[row, column], gpus[row, column] = rate, option.gpus
            for limit in supply.limits(option):
                uses[limits.index(limit), row, column] = option.gpus
    weights = np.array([job.weight for job in jobs])
    shares, solved = max_min(rates, gpus, uses, np.array(list(supply.gpus.values()), float), usable, weights)
    named = (dict(zip(models, map(float, row), strict=True)) for row in shares)
    return TimeShares(dict(zip([job.id for job in jobs], named, strict=True)), solved)
