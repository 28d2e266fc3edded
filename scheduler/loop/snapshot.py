"""ClusterState from rows.

It takes a handful of queries, whatever the number of jobs and nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import QuerySet

from knowledge.core.recommend.objectives import keeping
from scheduler.core.limits import NO_TEAM, Limits
from scheduler.core.market.types import MarketView
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.remaining_time import times_slower
from scheduler.core.types import ClusterState, GpuId, Holding, JobInfo, Topology
from scheduler.loop.declines import Avoided, avoided_by
from scheduler.loop.nodes_seen import nodes_with_free
from scheduler.loop.options.nodes_away import explain_nodes_away
from scheduler.loop.options.nodes_offline import with_offline_nodes
from scheduler.loop.options.option_cache import JobOptions, options_of, with_promises
from scheduler.loop.options.unsupported import explain_missing_options
from scheduler.loop.options.within_budget import within_budget
from scheduler.models import Allocation, Attempt, Job, JobArray, Market, PendingStart
from scheduler.selectors.checkpoints import only_nodes
from scheduler.selectors.cluster.fair_shares import FairShares, shares_of
from scheduler.selectors.cluster.stop_costs import preempted, restart_s, saved_at, unsaved_s
from scheduler.selectors.cluster.windows import windows_in_force
from scheduler.selectors.dependencies import awaited
from scheduler.selectors.figures.cost import job_costs
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.jobs import JobColumns, job_columns
from scheduler.selectors.markets.foreseen import market_view
from scheduler.selectors.quotas import limits_in_force
from scheduler.services.jobs.hand_over import gpu_ids
from scheduler.services.jobs.objectives import objective_of
from scheduler.states import LIVE, STOPPABLE, JobState, WaitState

ATTEMPT_COLUMNS = (
    "job_id", "fence", "option", "created_at", "ended_at", "progress", "measured", "stopped_for_id",
)  # fmt: skip
A_DAY = timedelta(days=1)
LEAVES = "It is being stopped; it waits again once its work is saved."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The facts of the jobs in other tables, by job."""

    options: Mapping[str, JobOptions]
    held: Mapping[str, tuple[GpuId, ...]]
    attempts: Mapping[str, list[Attempt]]
    pinned: Mapping[str, str]
    no_option: Mapping[str, str]
    nodes_away: Mapping[str, str]
    avoided: Mapping[str, Avoided]
    pending: Mapping[str, Holding]
    saved_at: Mapping[str, datetime]
    awaited: Mapping[str, tuple[str, ...]]
    array_limits: Mapping[str | None, int]
    spent: Mapping[str, float]
    shares: FairShares
    fronts: Mapping[str, float]


class _Past(NamedTuple):
    """The fields of JobInfo that follow from its attempts."""

    attained_gpu_s: float = 0.0
    restart_s: float = 0.0
    slower: float = 1.0
    unsaved_s: float = 0.0
    preemptions: int = 0
    preempted_at: float | None = None
    restarts: int = 0


NEVER_RAN = _Past()


def take_snapshot(memory: Mapping[str, Any], now: datetime) -> ClusterState:
    """Return the cluster at `now`.

    It consists of waiting and running jobs with their options, and nodes with the GPUs that no
    job holds. A job for which GPUs are kept is shown as their holder, and a job that was stopped
    for another as waiting, so that nothing is decided twice.
    """
    present = Job.objects.filter(state__in=[JobState.QUEUED, *LIVE]).order_by("submitted_at", "id")
    jobs = job_columns(present)
    options = options_of(jobs)
    without = [job.pk for job in jobs if not options[job.pk].options]
    rows = _Rows(
        options=options,
        held=_held(),
        attempts=_history(present),
        pinned=only_nodes(present.filter(state=JobState.QUEUED)),
        no_option=explain_missing_options(without),
        nodes_away=explain_nodes_away(without),
        avoided=with_offline_nodes(avoided_by(present, now), jobs, options),
        pending=_pending(),
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
        jobs=tuple(_job(job, rows, now) for job in jobs),
        nodes=nodes_with_free(taken, now),
        memory=memory,
        limits=limits_in_force({job.owner_id for job in jobs}, now) if jobs else Limits(),
        windows=windows_in_force(now) if jobs else (),
        markets=_markets(jobs, now),
        used=rows.shares.with_held(_holders(jobs, rows), now),
    )


def _held() -> dict[str, tuple[GpuId, ...]]:
    """The GPUs that each job holds."""
    rows = Allocation.objects.filter(released_at__isnull=True).order_by("gpu__node_id", "gpu__index")
    held: dict[str, tuple[GpuId, ...]] = defaultdict(tuple)
    for job, node, index in rows.values_list("claim__attempt__job_id", "gpu__node_id", "gpu__index"):
        held[job] += ((node, index),)
    return held


def _holders(jobs: Sequence[JobColumns], rows: _Rows) -> Iterator[tuple[JobColumns, int, datetime]]:
    """Jobs that hold GPUs, how many, and since when."""
    for job in jobs:
        for attempt in rows.attempts[job.pk]:
            if attempt.ended_at is None:
                yield job, len(rows.held.get(job.pk, ())), attempt.created_at


def _pending() -> dict[str, Holding]:
    """The GPUs that are kept for each job, as if it held them."""
    starts = PendingStart.objects.prefetch_related("gpus__gpu")
    return {
        start.job_id: Holding(option=start.promised, gpus=gpu_ids(start), since=start.made_at.timestamp())
        for start in starts
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


def _job(job: JobColumns, rows: _Rows, now: datetime) -> JobInfo:
    aim, paid = objective_of(job, now), within_budget(rows.options[job.pk], job.budget)
    attempts, avoided = rows.attempts[job.pk], rows.avoided.get(job.pk, Avoided())
    past = _past(job, attempts, rows, now) if attempts else NEVER_RAN  # as most that wait
    holds = _holding(job, rows, now)
    weight, team_weight = rows.shares.weights(job)
    return JobInfo(
        id=job.pk,
        submitted_at=job.submitted_at.timestamp(),
        options=keeping(paid.options, aim.deadline_s, aim.budget),
        goal=aim.goal,
        user=str(job.owner_id),
        team=str(job.team_id) if job.team_id else NO_TEAM,
        weight=weight,
        team_weight=team_weight,
        priority=job.priority + rows.fronts.get(job.pk, 0.0),
        borrows=job.preemptible,
        topology=Topology(job.topology),
        level=job.topology_level or TopologyLevel.NODE,
        due_at=job.deadline_at.timestamp() if job.deadline_at else None,
        work_left=1 - job.step / job.total_steps if job.total_steps and job.step <= job.total_steps else 1.0,
        attained_gpu_s=past.attained_gpu_s,
        restart_s=past.restart_s,
        slower=past.slower,
        unsaved_s=past.unsaved_s,
        preemptible=job.preemptible and job.state in STOPPABLE,
        preemptions=past.preemptions,
        preempted_at=past.preempted_at,
        restarts=past.restarts,
        first_started_at=job.first_started_at.timestamp() if job.first_started_at else None,
        stopped_at=None if holds else _stopped_at(job, attempts),
        holds=holds,
        only_node=rows.pinned.get(job.pk),
        avoids=avoided.nodes,
        declined=avoided.text,
        no_option=rows.no_option.get(job.pk, "") or paid.why_none,
        nodes_away=rows.nodes_away.get(job.pk, ""),
        dearer=paid.why_fewer,
        array=job.array_id or "",
        array_limit=rows.array_limits.get(job.array_id, 0),
        begins_at=job.begin_at.timestamp() if job.begin_at else None,
        awaits=rows.awaited.get(job.pk, ()),
        hold=_hold(job),
        held=_held_by_an_administrator(job),
        spot=job.spot,
        budget=job.budget,
        spent=rows.spent.get(job.pk, 0.0),
        run_left_s=None if job.max_run_s is None else job.max_run_s - duration_s(attempts, now),
    )


def _past(job: JobColumns, attempts: Sequence[Attempt], rows: _Rows, now: datetime) -> _Past:
    stops = preempted(attempts)
    return _Past(
        attained_gpu_s=sum(_gpu_seconds(attempt, now) for attempt in attempts),
        restart_s=restart_s(attempts),
        slower=_slower(attempts) if job.spot and job.deadline_at else 1.0,
        unsaved_s=unsaved_s(attempts, rows.saved_at.get(job.pk), now),
        preemptions=sum(at > now - A_DAY for at in stops),
        preempted_at=stops[-1].timestamp() if stops else None,
        restarts=len(attempts) - 1,
    )


def _held_by_an_administrator(job: JobColumns) -> str:
    """The note, in words for its owner."""
    if job.held_at is None:
        return ""
    return f"An administrator holds it: {job.held_note}" if job.held_note else "An administrator holds it."


def _hold(job: JobColumns) -> str:
    """Why the job may not start, although it is shown as waiting."""
    if job.preempting:
        return LEAVES
    return job.wait_text if job.wait_code == WaitState.OPTIONS else ""


def _stopped_at(job: JobColumns, attempts: list[Attempt]) -> float | None:
    """Since when a job that ran before waits again."""
    if job.state == JobState.STOPPING:
        return job.state_since.timestamp()
    ended = [attempt.ended_at for attempt in attempts if attempt.ended_at]
    return ended[-1].timestamp() if ended else None


def _slower(attempts: Sequence[Attempt]) -> float:
    """The slowness of the last attempt that was measured; 1 before one was."""
    known = (times_slower(one.promised, one.remaining) for one in reversed(attempts) if one.remaining)
    return next((slower for slower in known if slower is not None), 1.0)


def _gpu_seconds(attempt: Attempt, now: datetime) -> float:
    return max(0.0, attempt.lasted_s(now)) * attempt.promised.gpus


def _holding(job: JobColumns, rows: _Rows, now: datetime) -> Holding | None:
    """The GPUs that the job holds or gets; None while it leaves them to another."""
    if kept := rows.pending.get(job.pk):
        return kept
    gpus = rows.held.get(job.pk, ())
    if not gpus or job.preempting:
        return None
    attempt = next((attempt for attempt in rows.attempts[job.pk] if attempt.ended_at is None), None)
    if attempt is None:
        return None
    left = attempt.remaining.left(now.timestamp()) if attempt.remaining else None
    return Holding(
        option=attempt.promised,
        gpus=gpus,
        since=attempt.created_at.timestamp(),
        left_s=left.value if left else None,
    )


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
