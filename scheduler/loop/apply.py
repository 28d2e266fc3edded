"""Actions applied to rows.

Each is in a transaction of its own and is checked against the present rows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from scheduler.core.handovers import Handover, handovers
from scheduler.core.types import ClusterState, Plan, Policy, Preempt, Resize, Start, Wait
from scheduler.errors import CannotPlace, StaleJob
from scheduler.loop import leadership
from scheduler.loop.budget import TickBudget
from scheduler.models import Epoch, Job
from scheduler.services.jobs.hand_over import hand_over, release_gpus
from scheduler.services.jobs.starts import OF_A_START, Placed, held_jobs, require_as_decided, start_attempts
from scheduler.services.markets.decisions import keep_market_decisions
from scheduler.services.markets.orders import take_orders
from scheduler.states import JobState, WaitState

MOST = 500  # characters that a job keeps of why it waits
log = logging.getLogger(__name__)


class Applied(NamedTuple):
    """The number of jobs started, and whether the whole plan was looked at."""

    started: int
    whole: bool


def apply(epoch: Epoch, state: ClusterState, plan: Plan, policy: str, now: datetime) -> Applied:
    """Carry out a plan as far as a tick may go.

    Raises SchedulerReplaced. Each start and each stop is a hint for the next tick, which decides
    anew about the remaining actions. Its wants of markets are kept for their task.
    """
    if state.markets:
        with leadership.row(epoch, nodes=str(len(plan.nodes))):
            take_orders(actions=plan.nodes, now=now)
            keep_market_decisions(state=state, memory=plan.memory, now=now)
    whole, budget = True, TickBudget()
    starts = _Starts(epoch, budget, now)
    groups, idle = handovers(state, plan)
    for changes in groups:
        hands_over = changes[0].moves or changes[0].held_by
        if hands_over or starts.fill_the_tick:
            starts.begin()
        if not budget.allows():
            whole = False
            break
        if hands_over:
            budget.spend(_hand_over(epoch, changes, policy, now))
        else:
            starts.gathered[changes[0].takes.job] = changes[0].takes
    starts.begin()
    for stop in idle:
        whole = whole and budget.allows()
        if whole:
            _stop(epoch, stop, policy, now)
            budget.spend()
    _explain(epoch, [action for action in plan.actions if isinstance(action, Wait)])
    return Applied(starts.begun, whole)


def wait_for_the_round(epoch: Epoch, policy: Policy) -> int:
    """Tell jobs that came since the last round what they wait for.

    Returns how many jobs wait.
    """
    waiting = Job.objects.filter(state=JobState.QUEUED)
    text = f"{policy.name} decides every {policy.round_s:g} s; it looks at this job in the next round."
    with transaction.atomic():
        leadership.hold(epoch)
        waiting.filter(wait_code="").update(wait_code=WaitState.ROUND, wait_text=text)
    return waiting.count()


class _Starts:
    """Starts on free GPUs, gathered so that they begin together."""

    def __init__(self, epoch: Epoch, budget: TickBudget, now: datetime) -> None:
        self.epoch, self.budget, self.now = epoch, budget, now
        self.gathered: dict[str, Start | Resize] = {}  # by job
        self.begun = 0

    @property
    def fill_the_tick(self) -> bool:
        return len(self.gathered) >= self.budget.room

    def begin(self) -> None:
        """Those that are refused leave their place in the tick to others."""
        begun = leadership.together(self.epoch, list(self.gathered), self._start, self.budget.allows)
        self.gathered = {}
        self.begun += begun
        self.budget.spend(begun)

    def _start(self, names: Sequence[str]) -> int:
        jobs, placed = held_jobs(names, *OF_A_START), []
        refused: dict[str, Exception] = {}
        for name in names:
            action = self.gathered[name]
            try:
                if name not in jobs:
                    raise CannotPlace(f"Job {name} is gone.")
                require_as_decided(jobs[name], action.option)
                placed.append(Placed(jobs[name], action.option, action.gpus))
            except CannotPlace as changed:
                refused[name] = changed
        attempts, others = start_attempts(placed=placed, now=self.now)
        for name, why in (*refused.items(), *((job.pk, why) for job, why in others.items())):
            # The rows moved on since the snapshot; the next tick decides anew.
            log.info("start not applied", extra={"job": name, "reason": str(why)})
        return len(attempts)


def _hand_over(epoch: Epoch, changes: Sequence[Handover], policy: str, now: datetime) -> int:
    """Returns how many jobs were asked to stop, or are waited for."""
    done: list[Handover] = []
    job = changes[0].takes.job
    try:
        with leadership.row(epoch, StaleJob, job=job):
            done = hand_over(changes=changes, policy=policy, now=now)
    except StaleJob as changed:
        log.info("handovers not applied", extra={"job": job, "reason": str(changed)})
    return sum(len(change.victims) + 1 for change in done)


def _stop(epoch: Epoch, action: Preempt, policy: str, now: datetime) -> None:
    with leadership.row(epoch, job=action.job):
        release_gpus(job_id=action.job, reason=action.reason, policy=policy, now=now)


def _explain(epoch: Epoch, waits: list[Wait]) -> None:
    """Write why each waiting job waits, where that changed."""
    reasons = {wait.job: wait for wait in waits}
    with transaction.atomic():
        leadership.hold(epoch)
        changed = []
        shown = Job.objects.filter(state=JobState.QUEUED).values_list("pk", "wait_code", "wait_text")
        for job, *before in shown:
            wait = reasons.get(job)
            if wait is None or wait.code is WaitState.OPTIONS:
                continue  # written where it begins and cleared where it ends, maybe since the snapshot
            code, text = wait.code, wait.reason[:MOST]
            if [code, text] != before:
                changed.append(Job(pk=job, wait_code=code, wait_text=text))
        # Only those that still wait: one that was cancelled meanwhile keeps no reason.
        Job.objects.filter(state=JobState.QUEUED).bulk_update(
            changed, ["wait_code", "wait_text"], batch_size=500
        )
