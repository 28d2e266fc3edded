"""Actions applied to rows, each of which is checked against the present rows.

Starts on free GPUs are carried out together, and so are handovers, in one transaction each; where one of them
fails, each has a transaction of its own. Other stops have their own anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
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
    gathered = _Gathered(epoch, budget, policy, now)
    groups, idle = handovers(state, plan)
    for changes in groups:
        if gathered.fill_the_tick:
            gathered.carry_out()
        if not budget.allows():
            whole = False
            break
        gathered.add(changes)
    gathered.carry_out()
    for stop in idle:
        whole = whole and budget.allows()
        if whole:
            _stop(epoch, stop, policy, now)
            budget.spend()
    _explain(epoch, [action for action in plan.actions if isinstance(action, Wait)])
    return Applied(gathered.started, whole)


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


class _Gathered:
    """Starts on free GPUs and handovers, each kind of which is carried out together."""

    def __init__(self, epoch: Epoch, budget: TickBudget, policy: str, now: datetime) -> None:
        self.epoch, self.budget, self.policy, self.now = epoch, budget, policy, now
        self.starts: dict[str, Start | Resize] = {}  # by job
        self.handovers: dict[str, list[Handover]] = {}  # by the first job that takes GPUs
        self.started = 0

    def add(self, changes: list[Handover]) -> None:
        """Of several changes all stand for one."""
        first = changes[0]
        if first.moves or first.held_by:
            self.handovers[first.takes.job] = changes
        else:
            self.starts[first.takes.job] = first.takes

    @property
    def fill_the_tick(self) -> bool:
        return len(self.starts) + sum(map(_size, self.handovers.values())) >= self.budget.room

    def carry_out(self) -> None:
        """Those that are refused leave their place in the tick to others."""
        begun = leadership.together(self.epoch, list(self.starts), self._start, self.budget.allows)
        self.budget.spend(begun)
        self.started += begun
        asked = leadership.together(self.epoch, list(self.handovers), self._hand_over, self.budget.allows)
        self.budget.spend(asked)
        self.starts, self.handovers = {}, {}

    def _start(self, names: Sequence[str]) -> int:
        jobs, placed = held_jobs(names, *OF_A_START), []
        refused: dict[str, Exception] = {}
        for name in names:
            action = self.starts[name]
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

    def _hand_over(self, names: Sequence[str]) -> int:
        changes = [change for name in names for change in self.handovers[name]]
        try:
            with transaction.atomic():
                return _size(hand_over(changes=changes, policy=self.policy, now=self.now))
        except StaleJob as changed:
            if len(names) > 1:
                raise  # each alone
            log.info("handovers not applied", extra={"job": names[0], "reason": str(changed)})
            return 0


def _size(changes: Iterable[Handover]) -> int:
    """How many jobs are asked to stop, or are waited for."""
    return sum(len(change.victims) + 1 for change in changes)


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
