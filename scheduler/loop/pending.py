"""Pending starts, looked at before every decision.

They are applied once their GPUs are free, or given up.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from knowledge.core.domain.types import Option
from portal.clock import database_now
from scheduler.errors import CannotPlace, StaleJob
from scheduler.loop import leadership
from scheduler.loop.budget import TickBudget
from scheduler.loop.options.option_cache import options_kept_for
from scheduler.models import Allocation, Epoch, Job, PendingGpu, PendingStart
from scheduler.selectors.checkpoints import only_nodes
from scheduler.selectors.nodes import trusted_since
from scheduler.selectors.policy import chosen_at
from scheduler.services.jobs.attempts import hold_ready_nodes, start_attempt
from scheduler.services.jobs.hand_over import explain_pending, gpu_ids, let_lapse
from scheduler.services.jobs.transitions import locked
from scheduler.states import JobState, NodeState, WaitState

OF_GPU = (
    "gpu__node_id", "gpu__index", "gpu__node__state", "gpu__node__last_seen_at",
    "gpu__node__price_per_gpu_hour",
)  # fmt: skip
log = logging.getLogger(__name__)


class KeptGpu(NamedTuple):
    """A GPU that is kept, and its node."""

    pk: int
    node_id: str
    place: int
    state: str
    last_seen_at: datetime
    price_per_gpu_hour: float


class PendingColumns(NamedTuple):
    """A pending start as far as every tick looks at it.

    Hundreds may wait, and objects of the models cost several times as much.
    """

    pk: int
    job_id: str
    made_at: datetime
    expires_at: datetime
    promised: Option
    gpus: Sequence[KeptGpu]


def pending_starts() -> list[PendingColumns]:
    """All of them, oldest first."""
    columns = ("pk", "job_id", "made_at", "expires_at")
    rows = list(PendingStart.objects.order_by("made_at", "pk").values_list(*columns))
    if not rows:
        return []
    options = options_kept_for(row[:3] for row in rows)
    gpus: dict[int, list[KeptGpu]] = defaultdict(list)
    kept = PendingGpu.objects.order_by("pk").values_list("start_id", "gpu_id", *OF_GPU)
    for start, *gpu in kept:
        gpus[start].append(KeptGpu(*gpu))
    return [
        PendingColumns._make((*row, options[row[:3]], gpus[row[0]])) for row in rows if row[:3] in options
    ]


def settle_pending(epoch: Epoch, now: datetime) -> int:
    """Start the jobs whose GPUs have become free, and give up what cannot be any more.

    Returns the number of jobs started. Raises SchedulerReplaced.
    """
    known = pending_starts()
    if not known:
        return 0
    started, budget, since = 0, TickBudget(), chosen_at()
    waiting = _still_waiting(known, now)
    due = [start.pk for start in known if start.pk not in waiting or _is_outdated(start, since)]
    starts = PendingStart.objects.filter(pk__in=due).order_by("made_at", "pk")
    for start in starts.prefetch_related("gpus__gpu") if due else ():
        if not budget.allows():
            break
        with leadership.row(epoch, job=start.job_id):
            started += _settle(start, since, now)
            budget.spend()
    return started


def _still_waiting(starts: Sequence[PendingColumns], now: datetime) -> set[int]:
    """The pending starts of which others still hold GPUs.

    Nothing else has come between.
    Three queries for all, so that many that wait hold up neither a tick nor those whose GPUs are free.
    """
    jobs, fresh = Job.objects.filter(pending_start__isnull=False), trusted_since(now)
    waiting = set(
        jobs.filter(state=JobState.QUEUED, wait_code=WaitState.PENDING).values_list("pk", flat=True)
    )
    pinned = only_nodes(jobs)
    kept = Allocation.objects.filter(gpu__pending__isnull=False, released_at__isnull=True)
    held = set(kept.values_list("gpu_id", flat=True))

    def as_before(start: PendingColumns) -> bool:
        gpus, limit = start.gpus, start.promised.price_per_gpu_hour
        return (
            start.job_id in waiting
            and any(gpu.pk in held for gpu in gpus)
            and start.expires_at >= now
            and len(gpus) == start.promised.gpus
            and all(gpu.state == NodeState.READY and gpu.last_seen_at >= fresh for gpu in gpus)
            and all(limit is None or gpu.price_per_gpu_hour <= limit for gpu in gpus)
            and (start.job_id not in pinned or {gpu.node_id for gpu in gpus} == {pinned[start.job_id]})
        )

    return {start.pk for start in starts if as_before(start)}


def _is_outdated(start: PendingStart | PendingColumns, policy_since: datetime | None) -> bool:
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
        start_attempt(job=job, option=start.promised, gpus=gpu_ids(start), now=now)
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
        return start.why_over or "Its GPUs did not become free in time."
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
