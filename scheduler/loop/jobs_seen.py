"""The jobs of a cluster as policies see them, from rows.

A job that never ran is the same value from tick to tick until its row changes: most of a long queue is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from knowledge.core.recommend.objectives import keeping
from scheduler.core.job_terms import seen_terms
from scheduler.core.limits import NO_TEAM
from scheduler.core.remaining_time import times_slower
from scheduler.core.types import GpuId, Holding, JobInfo
from scheduler.loop.declines import Avoided
from scheduler.loop.options.option_cache import JobOptions
from scheduler.loop.options.within_budget import within_budget
from scheduler.models import Attempt
from scheduler.selectors.cluster.fair_shares import FairShares
from scheduler.selectors.cluster.stop_costs import preempted, restart_s, unsaved_s
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.jobs import JobColumns
from scheduler.services.jobs.objectives import objective_of
from scheduler.states import STOPPABLE, JobState, WaitState

A_DAY = timedelta(days=1)
LEAVES = "It is being stopped; it waits again once its work is saved."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRows:
    """The facts of the jobs in other tables, by job."""

    options: Mapping[str, JobOptions]
    held: Mapping[str, tuple[GpuId, ...]]
    attempts: Mapping[str, Sequence[Attempt]]
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

    def apart(self) -> set[str]:
        """The jobs that are told of in other tables."""
        return set().union(
            self.held, self.attempts, self.pinned, self.no_option, self.nodes_away, self.avoided,
            self.pending, self.saved_at, self.awaited, self.spent, self.fronts,
        )  # fmt: skip


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


class _Known(NamedTuple):
    """A job that never ran, and all that it was made of."""

    row: JobColumns
    options: JobOptions
    weights: tuple[float, float]
    seen: JobInfo


_known: dict[str, _Known] = {}


def jobs_seen(jobs: Sequence[JobColumns], rows: JobRows, now: datetime) -> tuple[JobInfo, ...]:
    """The jobs in their order.

    One of which other tables tell nothing, and which has no deadline to come nearer, is made anew only where
    its row, its options or its weights are others than before. Jobs that are not asked for are forgotten.
    """
    global _known
    apart, found, known = rows.apart(), [], {}
    for job in jobs:
        if job.id in apart or job.deadline_at or job.array_id in rows.array_limits:
            found.append(_job(job, rows, now))
            continue
        made_of = job, rows.options[job.id], rows.shares.weights(job)
        before = _known.get(job.id)
        if before is None or before[:3] != made_of:
            before = _Known(*made_of, _job(job, rows, now))
        known[job.id] = before
        found.append(before.seen)
    _known = known
    return tuple(found)


def _job(job: JobColumns, rows: JobRows, now: datetime) -> JobInfo:
    aim, paid = objective_of(job, now), within_budget(rows.options[job.pk], job.budget)
    attempts, avoided = rows.attempts.get(job.pk, ()), rows.avoided.get(job.pk, Avoided())
    past = _past(job, attempts, rows, now) if attempts else NEVER_RAN  # as most that wait
    holds = _holding(job, rows, now)
    weight, team_weight = rows.shares.weights(job)
    return JobInfo(
        id=job.pk,
        submitted_at=job.submitted_at.timestamp(),
        options=keeping(paid.options, aim.deadline_s, aim.budget),
        user=str(job.owner_id),
        team=str(job.team_id) if job.team_id else NO_TEAM,
        weight=weight,
        team_weight=team_weight,
        priority=job.priority + rows.fronts.get(job.pk, 0.0),
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
        awaits=rows.awaited.get(job.pk, ()),
        hold=_hold(job),
        held=_held_by_an_administrator(job),
        spent=rows.spent.get(job.pk, 0.0),
        run_left_s=None if job.max_run_s is None else job.max_run_s - duration_s(attempts, now),
        **seen_terms(job),
    )


def _past(job: JobColumns, attempts: Sequence[Attempt], rows: JobRows, now: datetime) -> _Past:
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


def _stopped_at(job: JobColumns, attempts: Sequence[Attempt]) -> float | None:
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


def _holding(job: JobColumns, rows: JobRows, now: datetime) -> Holding | None:
    """The GPUs that the job holds or gets; None while it leaves them to another."""
    if kept := rows.pending.get(job.pk):
        return kept
    gpus = rows.held.get(job.pk, ())
    if not gpus or job.preempting:
        return None
    attempt = next((attempt for attempt in rows.attempts.get(job.pk, ()) if attempt.ended_at is None), None)
    if attempt is None:
        return None
    left = attempt.left(now)
    return Holding(
        option=attempt.promised,
        gpus=gpus,
        since=(attempt.begun_at or now).timestamp(),
        left_s=left.value if left else None,
    )
