"""ClusterState from rows.

It takes a handful of queries, whatever the number of jobs and nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduler.core.limits import Limits
from scheduler.core.market.types import MarketView
from scheduler.core.types import ClusterState, GpuId, Holding
from scheduler.loop.declines import avoided_by
from scheduler.loop.jobs_seen import JobRows, jobs_seen
from scheduler.loop.nodes_seen import nodes_with_free
from scheduler.loop.options.nodes_away import explain_nodes_away
from scheduler.loop.options.nodes_offline import with_offline_nodes
from scheduler.loop.options.option_cache import options_of, with_promises
from scheduler.loop.options.unsupported import explain_missing_options
from scheduler.loop.pending import pending_starts
from scheduler.models import Allocation, Attempt, Job, JobArray, Market
from scheduler.selectors.checkpoints import only_nodes
from scheduler.selectors.cluster.fair_shares import shares_of
from scheduler.selectors.cluster.stop_costs import saved_at
from scheduler.selectors.cluster.windows import windows_in_force
from scheduler.selectors.dependencies import awaited
from scheduler.selectors.figures.cost import job_costs
from scheduler.selectors.jobs import JobColumns, job_columns
from scheduler.selectors.markets.foreseen import market_view
from scheduler.selectors.quotas import limits_in_force
from scheduler.states import LIVE, JobState, is_preempting

ATTEMPT_COLUMNS = (
    "job_id", "fence", "created_at", "queued_s", "ended_at", "progress", "measured", "stopped_for_id",
)  # fmt: skip


def take_snapshot(memory: Mapping[str, Any], now: datetime) -> ClusterState:
    """Return the cluster at `now`.

    It consists of waiting and running jobs with their options, and nodes with the GPUs that no
    job holds. A job for which GPUs are kept is shown as their holder, and a job that was stopped
    for another as waiting, so that nothing is decided twice.
    """
    present = Job.objects.filter(state__in=[JobState.QUEUED, *LIVE]).order_by("submitted_at", "id")
    held, pending = _held(), _pending()
    jobs = [job for job in job_columns(present) if not _only_delivers(job, held, pending)]
    options = options_of(jobs)
    without = [job.pk for job in jobs if not options[job.pk].options]
    rows = JobRows(
        options=options,
        held=held,
        attempts=_history(present),
        pinned=only_nodes(present.filter(state=JobState.QUEUED)),
        no_option=explain_missing_options(without),
        nodes_away=explain_nodes_away(without),
        avoided=with_offline_nodes(avoided_by(present, now), jobs, options),
        pending=pending,
        saved_at=saved_at(present),
        array_limits=_array_limits(jobs),
        spent=_spent(jobs, now),
        awaited=awaited(present.filter(state=JobState.QUEUED)),
        shares=shares_of(jobs, now),
        fronts=_fronts(jobs),
    )
    taken = {gpu for gpus in rows.held.values() for gpu in gpus}
    taken |= {gpu for holding in rows.pending.values() for gpu in holding.gpus}
    return ClusterState(
        jobs=jobs_seen(jobs, rows, now),
        nodes=nodes_with_free(taken, now),
        memory=memory,
        limits=limits_in_force({job.owner_id for job in jobs}, now) if jobs else Limits(),
        windows=windows_in_force(now) if jobs else (),
        markets=_markets(jobs, now),
        used=rows.shares.with_held(_holders(jobs, rows), now),
    )


def _only_delivers(job: JobColumns, *holding: Mapping[str, object]) -> bool:
    """Has its training ended, so that it has left its GPUs and brings its files alone?

    There is nothing to decide about such a job, unless it waits for GPUs again.
    """
    waits = job.state == JobState.QUEUED or is_preempting(job.state, job.stop_for)
    return not waits and not any(job.pk in held for held in holding)


def _held() -> dict[str, tuple[GpuId, ...]]:
    """The GPUs that each job holds."""
    rows = Allocation.objects.filter(released_at__isnull=True).order_by("gpu__node_id", "gpu__index")
    held: dict[str, tuple[GpuId, ...]] = defaultdict(tuple)
    for job, node, index in rows.values_list("claim__attempt__job_id", "gpu__node_id", "gpu__index"):
        held[job] += ((node, index),)
    return held


def _holders(jobs: Sequence[JobColumns], rows: JobRows) -> Iterator[tuple[JobColumns, int, datetime]]:
    """Jobs that hold GPUs, how many, and since when."""
    for job in jobs:
        for attempt in rows.attempts.get(job.pk, ()):
            if attempt.ended_at is None:
                yield job, len(rows.held.get(job.pk, ())), attempt.created_at


def _pending() -> dict[str, Holding]:
    """The GPUs that are kept for each job, as if it held them."""
    return {
        start.job_id: Holding(
            option=start.promised,
            gpus=tuple((gpu.node_id, gpu.place) for gpu in start.gpus),
            since=start.made_at.timestamp(),
        )
        for start in pending_starts()
    }


def _array_limits(jobs: list[JobColumns]) -> dict[str | None, int]:
    """The limits of the arrays that have one."""
    arrays = {job.array_id for job in jobs if job.array_id}
    limits = JobArray.objects.filter(pk__in=arrays).values_list("pk", "limit") if arrays else ()
    return {array: limit for array, limit in limits if limit is not None}


def _fronts(jobs: Sequence[JobColumns]) -> dict[str, float]:
    """Shares of a class by which moved jobs go first, the last moved before all."""
    moved = sorted((job.front_at, job.pk) for job in jobs if job.front_at)
    return {job: place / (len(moved) + 1) for place, (_, job) in enumerate(moved, start=1)}


def _history(jobs: QuerySet[Job]) -> dict[str, list[Attempt]]:
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    rows = Attempt.objects.filter(job__in=jobs.order_by().values("pk")).order_by("fence")
    for attempt in with_promises(rows.only(*ATTEMPT_COLUMNS)):
        attempts[attempt.job_id].append(attempt)
    return attempts


def _markets(jobs: Sequence[JobColumns], now: datetime) -> tuple[MarketView, ...]:
    """The markets, where a job may be decided on them."""
    if not any(job.spot and job.deadline_at for job in jobs):
        return ()
    return tuple(market_view(market, now) for market in Market.objects.order_by("name"))


def _spent(jobs: Sequence[JobColumns], now: datetime) -> dict[str, float]:
    """The cost so far of jobs that are decided on markets."""
    on_markets = [job for job in jobs if job.spot and job.deadline_at]
    if not on_markets:
        return {}
    return {job: spent.amount for job, spent in job_costs(on_markets, now).items()}
