"""Stops by policies and administrators are counted, with what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Case, F, Max, Q, Value, When

from scheduler.core.stopping import StopReason
from scheduler.models import Allocation, Attempt, Checkpoint, Job, PendingGpu, PendingStart, Preemption
from scheduler.selectors.figures.times import lasted_s
from scheduler.selectors.policy import current_policy
from scheduler.states import WaitState
from trainer.protocol import Outcome

GPUS_ARE_KEPT: dict[str, Any] = {
    "wait_code": WaitState.PENDING,
    "wait_text": "GPUs are kept for it; it starts when the jobs on them have saved their work and left.",
}


def why_it_waits(job: Job) -> dict[str, Any]:
    """Return the columns of a job that has just left its GPUs.

    None if the next tick has to say it.
    """
    return GPUS_ARE_KEPT if PendingStart.objects.filter(job=job).exists() else {}


def stop_data(reason: StopReason) -> dict[str, Any]:
    """The data of the event of a job that is asked to stop."""
    return {"stop_reason": reason.value}


def note_preemptions(*, reasons: Mapping[Job, StopReason], policy: str = "", now: datetime) -> None:
    """Keep that jobs are asked to stop.

    policy: the one in force, where the caller knows it. One query then, else two.
    """
    if not reasons:
        return
    policy = policy or current_policy()
    Preemption.objects.bulk_create(
        Preemption(job=job, fence=job.fence, policy=policy, reason=reason, at=now)
        for job, reason in reasons.items()
    )


def note_lost_work(*, attempt: Attempt, gpus: int, outcome: Outcome, now: datetime) -> None:
    """Keep the GPU-seconds after the last checkpoint of an attempt that was stopped.

    They are done again; of one that succeeded all the same, nothing is.
    """
    lost_s = 0.0
    if outcome is not Outcome.SUCCEEDED:
        saved_at = Checkpoint.objects.filter(attempt=attempt).aggregate(at=Max("at"))["at"]
        lost_s = lasted_s(saved_at or attempt.begun_at or now, now)
    stop = Preemption.objects.filter(job=attempt.job_id, fence=attempt.fence)
    stop.update(gpus=gpus, lost_gpu_s=F("lost_gpu_s") + gpus * lost_s)


def note_kept_idle(*, takers: Collection[Job], now: datetime) -> None:
    """Keep for how many GPU-seconds GPUs lay idle that were kept for these jobs.

    To be called as that ends. They are lost to the stop of the job that left the GPU meanwhile, or, of one
    that was free, to that of another job which was stopped for the taker. The number of queries does not grow
    with the GPUs.
    """
    columns = ("gpu_id", "start__job_id", "start__made_at")
    kept = list(PendingGpu.objects.filter(start__job__in=takers).values_list(*columns))
    if not kept:
        return
    since = min(made_at for *_, made_at in kept)
    left = _last_held([gpu for gpu, *_ in kept], since)
    recent = Q(ended_at__isnull=True) | Q(ended_at__gte=since)
    stopped = Attempt.objects.filter(recent, stopped_for__in=takers)
    rows = stopped.values_list("stopped_for", "job", "fence")
    stop_for = {taker: _StoppedAttempt(job, fence) for taker, job, fence in rows}
    idle_s: dict[_StoppedAttempt, float] = defaultdict(float)
    for gpu, taker, made_at in kept:
        free_since, stop = left.get(gpu, (made_at, None))
        if free_since is None:
            continue  # it is still held
        if free_since <= made_at:
            free_since, stop = made_at, stop_for.get(taker)
        if stop:
            idle_s[stop] += lasted_s(free_since, now)
    if idle_s:
        cases = {Q(job=stop.job, fence=stop.fence): Value(seconds) for stop, seconds in idle_s.items()}
        added = Case(*(When(which, then=seconds) for which, seconds in cases.items()))
        Preemption.objects.filter(reduce(or_, cases)).update(lost_gpu_s=F("lost_gpu_s") + added)


class _StoppedAttempt(NamedTuple):
    """The attempt that was stopped."""

    job: str
    fence: int


def _last_held(
    gpus: Collection[int], since: datetime
) -> dict[int, tuple[datetime | None, _StoppedAttempt | None]]:
    """Until when GPUs were held last, and by whom, if that was since then.

    None: they still are.
    """
    held = Allocation.objects.filter(Q(released_at__isnull=True) | Q(released_at__gte=since), gpu__in=gpus)
    columns = ("gpu_id", "released_at", "claim__attempt__job", "claim__attempt__fence")
    rows = held.order_by(F("released_at").asc(nulls_last=True)).values_list(*columns)
    return {
        gpu: (at, _StoppedAttempt(job, fence)) for gpu, at, job, fence in rows
    }  # the last row of each counts


def note_start_up(*, attempt: Attempt, now: datetime) -> None:
    """Keep what it cost to start again, if the attempt before was stopped."""
    start_up_s = lasted_s(attempt.begun_at or now, now)
    stop = Preemption.objects.filter(job=attempt.job_id, fence=attempt.fence - 1)
    stop.update(lost_gpu_s=F("lost_gpu_s") + F("gpus") * start_up_s)
