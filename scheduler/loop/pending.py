"""Pending starts, looked at before every decision.

They are applied once their GPUs are free, or given up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

from portal.clock import database_now
from scheduler.errors import CannotPlace, StaleJob
from scheduler.loop import leadership
from scheduler.loop.budget import TickBudget
from scheduler.models import Allocation, Epoch, Job, PendingStart
from scheduler.selectors.checkpoints import only_nodes
from scheduler.selectors.nodes import trusted_since
from scheduler.selectors.policy import chosen_at
from scheduler.services.jobs.attempts import hold_ready_nodes, start_attempt
from scheduler.services.jobs.hand_over import explain_pending, gpu_ids, let_lapse
from scheduler.services.jobs.transitions import locked
from scheduler.states import JobState, NodeState, WaitState

log = logging.getLogger(__name__)


def settle_pending(epoch: Epoch, now: datetime) -> int:
    """Start the jobs whose GPUs have become free, and give up what cannot be any more.

    Returns the number of jobs started. Raises SchedulerReplaced.
    """
    starts = list(PendingStart.objects.order_by("made_at", "pk").prefetch_related("gpus__gpu__node"))
    started, budget, since = 0, TickBudget(), chosen_at() if starts else None
    waiting = _still_waiting(starts, now) if starts else set()
    for start in starts:
        if start.pk in waiting and not _is_outdated(start, since):
            continue
        if not budget.allows():
            break
        with leadership.row(epoch, job=start.job_id):
            started += _settle(start, since, now)
            budget.spend()
    return started


def _still_waiting(starts: Sequence[PendingStart], now: datetime) -> set[int]:
    """The pending starts of which others still hold GPUs.

    Nothing else has come between.
    Three queries for all, so that many that wait hold up neither a tick nor those whose GPUs are free.
    """
    jobs, fresh = Job.objects.filter(pk__in=[start.job_id for start in starts]), trusted_since(now)
    waiting = set(
        jobs.filter(state=JobState.QUEUED, wait_code=WaitState.PENDING).values_list("pk", flat=True)
    )
    pinned = only_nodes(jobs)
    kept = [one.gpu_id for start in starts for one in start.gpus.all()]
    held = set(
        Allocation.objects.filter(gpu__in=kept, released_at__isnull=True).values_list("gpu_id", flat=True)
    )

    def as_before(start: PendingStart) -> bool:
        gpus, limit = [one.gpu for one in start.gpus.all()], start.promised.price_per_gpu_hour
        return (
            start.job_id in waiting
            and any(gpu.pk in held for gpu in gpus)
            and start.expires_at >= now
            and len(gpus) == start.promised.gpus
            and all(gpu.node.state == NodeState.READY and gpu.node.last_seen_at >= fresh for gpu in gpus)
            and all(limit is None or gpu.node.price_per_gpu_hour <= limit for gpu in gpus)
            and (start.job_id not in pinned or {gpu.node_id for gpu in gpus} == {pinned[start.job_id]})
        )

    return {start.pk for start in starts if as_before(start)}


def _is_outdated(start: PendingStart, policy_since: datetime | None) -> bool:
    """Was another policy chosen since?"""
    return bool(policy_since and start.made_at <= policy_since)


def _settle(start: PendingStart, policy_since: datetime | None, now: datetime) -> bool:
    """Returns whether the job started."""
    job = locked(start.job_id)
    over = "Another policy was chosen." if _is_outdated(start, policy_since) else ""
    if over := over or _why_over(job, start, now):
        let_lapse(start=start, reason=over, now=now)
        return False
    if job.state != JobState.QUEUED or _held_by(start):
        explain_pending(start)
        return False
    now = database_now()  # not before the GPUs were seen free: no allocation begins before the last one ended
    try:
        start_attempt(job_id=job.pk, option=start.promised, gpus=gpu_ids(start), now=now)
    except (CannotPlace, StaleJob) as changed:
        let_lapse(start=start, reason=str(changed), now=now)
        return False
    return True


def _why_over(job: Job, start: PendingStart, now: datetime) -> str:
    """Why the job cannot start there any more; empty while it can."""
    gpus = gpu_ids(start)
    if job.state != JobState.QUEUED and not job.preempting:
        return f"The job is {job.state} by now."
    if job.state == JobState.QUEUED and job.wait_code == WaitState.OPTIONS:
        return "The job waits for another configuration."
    if start.expires_at < now:
        return "Its GPUs did not become free in time, or a limit was changed meanwhile."
    if len(gpus) != start.promised.gpus:
        return "A GPU that was kept for it is gone."
    nodes = {node for node, _ in gpus}
    try:
        hold_ready_nodes(sorted(nodes), start.promised, now)
    except CannotPlace as changed:
        return str(changed)
    if job.state == JobState.QUEUED and _is_elsewhere(job, nodes):
        return "Its last checkpoint lies on another node alone."
    return ""


def _is_elsewhere(job: Job, nodes: Iterable[str]) -> bool:
    only = only_nodes(Job.objects.filter(pk=job.pk)).get(job.pk)
    return only is not None and {*nodes} != {only}


def _held_by(start: PendingStart) -> bool:
    kept = [kept.gpu_id for kept in start.gpus.all()]
    return Allocation.objects.filter(gpu__in=kept, released_at__isnull=True).exists()
