"""Pending starts, looked at before every decision.

They are applied once their GPUs are free, or given up.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from knowledge.core.domain.types import Option
from portal.clock import database_now
from scheduler.errors import CannotPlace
from scheduler.loop import leadership
from scheduler.loop.budget import TickBudget
from scheduler.loop.options.option_cache import options_kept_for
from scheduler.models import Allocation, Epoch, Job, PendingGpu, PendingStart
from scheduler.selectors.checkpoints import only_nodes
from scheduler.selectors.policy import chosen_at
from scheduler.selectors.silence import trusted_since
from scheduler.services.jobs.hand_over import explain_pending, gpu_ids, let_lapse
from scheduler.services.jobs.starts import (
    OF_A_START,
    Placed,
    held_jobs,
    ready_nodes,
    require_nodes,
    start_attempts,
)
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
    due = [start.job_id for start in known if start.pk not in waiting or _is_outdated(start, since)]
    while due and (room := budget.room):
        some, due = due[:room], due[room:]
        started += leadership.together(epoch, some, partial(_settle, since=since, now=now), budget.allows)
        budget.spend(len(some))
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


def _settle(names: Sequence[str], since: datetime | None, now: datetime) -> int:
    """Returns how many of the jobs started."""
    facts, ready = _Facts(names, now), list[PendingStart]()
    for start in facts.starts:
        if over := "Another policy was chosen." if _is_outdated(start, since) else facts.why_over(start):
            let_lapse(start=start, reason=over, now=now)
        elif facts.may_begin(start):
            ready.append(start)
        else:
            explain_pending(start)
    now = database_now()  # not before the GPUs were seen free: no allocation begins before the last one ended
    placed = [Placed(facts.jobs[start.job_id], start.promised, gpu_ids(start)) for start in ready]
    attempts, refused = start_attempts(placed=placed, now=now)
    for start in ready:
        if changed := refused.get(facts.jobs[start.job_id]):
            let_lapse(start=start, reason=str(changed), now=now)
    return len(attempts)


class _Facts:
    """The rows on which pending starts depend.

    Jobs, then nodes are held until the transaction ends.
    """

    def __init__(self, names: Sequence[str], now: datetime) -> None:
        self.now = now
        self.jobs = held_jobs(names, *OF_A_START)
        rows = PendingStart.objects.filter(job__in=self.jobs).order_by("made_at", "pk")
        self.starts = list(rows.prefetch_related("gpus__gpu"))  # whoever gives one up holds its job as well
        self.nodes = ready_nodes({node for start in self.starts for node, _ in gpu_ids(start)}, now)
        kept = [kept.gpu_id for start in self.starts for kept in start.gpus.all()]
        held = Allocation.objects.filter(gpu__in=kept, released_at__isnull=True)
        self.held = set(held.values_list("gpu_id", flat=True))
        self.pinned = only_nodes(Job.objects.filter(pk__in=self.jobs))

    def why_over(self, start: PendingStart) -> str:
        """Why the job cannot start there any more; empty while it can."""
        job, gpus = self.jobs[start.job_id], gpu_ids(start)
        if job.state != JobState.QUEUED and not job.preempting:
            return f"The job is {job.state} by now."
        if job.state == JobState.QUEUED and job.wait_code == WaitState.OPTIONS:
            return "The job waits for another configuration."
        if start.expires_at < self.now:
            return start.why_over or "Its GPUs did not become free in time."
        if len(gpus) != start.promised.gpus:
            return "A GPU that was kept for it is gone."
        nodes = {node for node, _ in gpus}
        try:
            require_nodes(self.nodes, nodes, start.promised)
        except CannotPlace as changed:
            return str(changed)
        only = self.pinned.get(job.pk)
        if job.state == JobState.QUEUED and only is not None and nodes != {only}:
            return "Its last checkpoint lies on another node alone."
        return ""

    def may_begin(self, start: PendingStart) -> bool:
        """Does the job wait, and are all its GPUs free?"""
        is_held = any(kept.gpu_id in self.held for kept in start.gpus.all())
        return self.jobs[start.job_id].state == JobState.QUEUED and not is_held
