"""Shares of time on each GPU model.

They make the worst-off job as well off as possible.

Source: Narayanan et al., Gavel, OSDI 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain.types import Option
from scheduler.core.divide.capacity import Capacity
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import JobInfo

Floats = NDArray[np.float64]
TIME_LIMIT_S = 5.0
SUM_WEIGHT = 1e-4  # breaks ties among max-min solutions towards more throughput in all


def max_min(
    rates: Floats, gpus: Floats, uses: Floats, limits: Floats, usable: Floats, weights: Floats
) -> Floats:
    """Return the time shares X that maximise the least weighted normalised throughput.

    X has shape (jobs, types). A throughput counts times the GPUs that it takes, so that of two
    jobs that gain the same the smaller one gets more time. If the solver gives up, all get equal shares.
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
    normal = rates * gpus / np.where(fair > 0, fair * weights, 1.0)[:, None]
    job = np.repeat(np.arange(count), kinds)
    column = np.arange(count * kinds)
    worst, one = np.full(count, count * kinds), np.ones(count)
    # Rows: worst - normal X <= 0 and sum of X <= 1 for each job; sum of uses X <= limit for each limit.
    limit, used = uses.reshape(len(limits), -1).nonzero()
    matrix = coo_array(
        (
            np.concatenate([-normal.ravel(), one * (fair > 0), np.ones(count * kinds), uses[uses != 0]]),
            (
                np.concatenate([job, np.arange(count), count + job, 2 * count + limit]),
                np.concatenate([column, worst, column, used]),
            ),
        ),
        shape=(2 * count + len(limits), count * kinds + 1),
    )
    bound = np.concatenate([np.zeros(count), np.ones(count), limits])
    gain = np.append(-SUM_WEIGHT / count * normal.ravel(), -1.0)
    bounds = [(0.0, 1.0 if rate > 0 else 0.0) for rate in rates.ravel()] + [(0.0, None)]
    found = linprog(
        gain,
        A_ub=matrix.tocsr(),
        b_ub=bound,
        bounds=bounds,
        method="highs",
        options={"time_limit": TIME_LIMIT_S},
    )
    return equal if found.x is None else np.asarray(found.x[:-1]).reshape(rates.shape)


def time_shares(
    jobs: Sequence[JobInfo], options: Mapping[str, Mapping[str, Option]], supply: Capacity
) -> dict[str, dict[str, float]]:
    """The share of time of each job (id) on each GPU model.

    options: of each job (id), one for each GPU model.
    """
    models, limits = supply.models, list(supply.gpus)
    if not jobs or not models:
        return {}
    rates, gpus, usable = np.zeros((3, len(jobs), len(models)))
    uses = np.zeros((len(limits), len(jobs), len(models)))
    for row, job in enumerate(jobs):
        found = options[job.id]
        method = next((option.config.method for option in found.values()), "")
        usable[row] = [supply.usable(model, method) for model in models]
        for (model, option), rate in zip(found.items(), known_rates(list(found.values())), strict=True):
            column = models.index(model)
            rates[row, column], gpus[row, column] = rate, option.gpus
            for limit in supply.limits(option):
                uses[limits.index(limit), row, column] = option.gpus
    weights = np.array([job.weight for job in jobs])
    shares = max_min(rates, gpus, uses, np.array(list(supply.gpus.values()), float), usable, weights)
    return {
        job.id: dict(zip(models, map(float, row), strict=True)) for job, row in zip(jobs, shares, strict=True)
    }
