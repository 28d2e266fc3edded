"""Gavel: shares of time on each GPU type that make the worst-off job as well off as possible.

A linear program finds X[j, t], the share of time job j spends on type t, so that the least normalised
throughput is largest; normalised by what the job would get from an equal share of the cluster, and by its
user's weight. Rounds realise the shares: the larger X over the share received so far, the earlier the turn.
Source: Narayanan et al., Gavel, OSDI 2020, and the authors' open code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain.types import Option
from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.repack import movable, possible, realize
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import ClusterState, Description, Job, Plan

Floats = NDArray[np.float64]
SUM_WEIGHT = 1e-4  # breaks ties among max-min solutions towards more throughput in all
TINY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Gavel:
    name: str = "gavel"
    description: ClassVar[Description] = Description(
        summary="Shares of time on each GPU model that make the worst-off job as well off as possible.",
        order="linear program, max-min normalised throughput; shares of time by GPU model; resizes jobs",
        needs="tokens/s of each option",
        source="Gavel, OSDI 2020",
    )
    preempts: bool = True
    round_s: float | None = 360.0
    placement: Placement = Placement.BEST_FIT

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Give this round's GPUs to those furthest behind their shares, larger priorities first."""
        jobs = sorted(movable(state), key=lambda job: (job.submitted_at, job.id))
        free = FreeGpus(state.nodes, self.placement)
        left = Capacity.of(state, jobs)
        received = _received(state, now)
        options = [_by_model(job, possible(job, free)) for job in jobs]
        shares = time_shares(jobs, options, left)
        wishes: dict[str, Option] = {}
        for row, model in _turns(jobs, options, shares, received, now):
            option = options[row][model]
            if jobs[row].id not in wishes and left.has(option):
                wishes[jobs[row].id] = option
                left.take(option)
        return Plan(
            realize(state, jobs, wishes, self.placement), {"at": now, "received": _kept(state, received)}
        )


def max_min(rates: Floats, uses: Floats, limits: Floats, usable: Floats, weights: Floats) -> Floats:
    """Time shares X of shape (jobs, types) that maximise the least weighted normalised throughput.

    rates: (jobs, types), throughput of each job alone on each type, 0 where it cannot run. uses: (limits,
    jobs, types), the GPUs that it takes there of each limit; limits: (limits,), GPUs within each. usable:
    (jobs, types), the GPUs of each type that a job could be given. weights: (jobs,).
    """
    from scipy.optimize import linprog  # this policy alone needs it, and it takes a third of a second
    from scipy.sparse import coo_array

    count, kinds = rates.shape
    equal = np.minimum(usable / count, 1.0)
    equal = equal / np.maximum(equal.sum(axis=1, keepdims=True), 1.0)
    fair = (rates * equal).sum(axis=1)
    normal = rates / np.where(fair > 0, fair * weights, 1.0)[:, None]
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
    found = linprog(gain, A_ub=matrix.tocsr(), b_ub=bound, bounds=bounds, method="highs")
    return np.zeros(rates.shape) if found.x is None else np.asarray(found.x[:-1]).reshape(rates.shape)


def time_shares(
    jobs: Sequence[Job], options: Sequence[Mapping[str, Option]], supply: Capacity
) -> dict[tuple[int, str], float]:
    """(row of the job, GPU model) -> share of time."""
    models, limits = supply.models, list(supply.gpus)
    if not jobs or not models:
        return {}
    rates, usable = np.zeros((2, len(jobs), len(models)))
    uses = np.zeros((len(limits), len(jobs), len(models)))
    for row, found in enumerate(options):
        method = next((option.config.method for option in found.values()), "")
        usable[row] = [supply.usable(model, method) for model in models]
        for (model, option), rate in zip(found.items(), known_rates(list(found.values())), strict=True):
            column = models.index(model)
            rates[row, column] = rate
            for limit in supply.limits(option):
                uses[limits.index(limit), row, column] = option.gpus
    weights = np.array([job.weight for job in jobs])
    shares = max_min(rates, uses, np.array(list(supply.gpus.values()), float), usable, weights)
    return {(row, model): float(shares[row, column]) for row in range(len(jobs))
            for column, model in enumerate(models)}  # fmt: skip


def _by_model(job: Job, options: Sequence[Option]) -> dict[str, Option]:
    """The option that the job's goal prefers on each GPU model."""
    best: dict[str, Option] = {}
    for option in sorted(options, key=lambda option: (-option.score(job.goal), -option.gpus)):
        best[option.gpu_model] = option
    return best


def _turns(
    jobs: Sequence[Job],
    options: Sequence[Mapping[str, Option]],
    shares: Mapping[tuple[int, str], float],
    received: Mapping[str, Mapping[str, float]],
    now: float,
) -> list[tuple[int, str]]:
    """Everybody's options, the one most behind its share first; ties to who holds it, then by arrival."""

    def turn(place: tuple[int, str]) -> tuple[float, float, bool, float, str, str]:
        row, model = place
        job = jobs[row]
        had = received.get(job.id, {}).get(model, 0.0) / max(now - job.submitted_at, 1.0)
        holds = job.holds is not None and job.holds.option.gpu_model == model
        return -job.priority, -shares[place] / (had + TINY), not holds, job.submitted_at, job.id, model

    return sorted(((row, model) for row, found in enumerate(options) for model in found), key=turn)


def _received(state: ClusterState, now: float) -> dict[str, dict[str, float]]:
    """Seconds that each job has had on each GPU model, the round that ends now included."""
    received = {job: dict(times) for job, times in state.memory.get("received", {}).items()}
    since: float = state.memory.get("at", now)
    for job in state.jobs:
        if job.holds:
            times = received.setdefault(job.id, {})
            model = job.holds.option.gpu_model
            held_s = now - max(since, min(job.holds.since, now))
            times[model] = times.get(model, 0.0) + max(0.0, held_s)
    return received


def _kept(state: ClusterState, received: Mapping[str, dict[str, float]]) -> dict[str, Any]:
    present = {job.id for job in state.jobs}
    return {job: received[job] for job in sorted(received) if job in present}


GAVEL = Gavel()
