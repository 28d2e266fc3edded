"""A policy's plan within all quotas and limits.

The policy decides about what it is shown; where a start would exceed a limit, that option is barred and the
policy decides again. So every policy keeps every limit, and none has to know of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from knowledge.core.domain.types import Option
from scheduler.core.eligibility import eligible, off_spot_nodes, with_waits
from scheduler.core.quotas.ledger import Ledger
from scheduler.core.quotas.reclaim import reclaim
from scheduler.core.quotas.swap import swap
from scheduler.core.types import ClusterState, JobInfo, Plan, Policy, Preempt, Resize, Start, Wait
from scheduler.core.windows import decide_within

PASSES = 8  # decisions of one tick; after the last, starts beyond a limit are left out

Ask = Callable[[ClusterState], Plan]


def decide(policy: Policy, state: ClusterState, now: float) -> Plan:
    """The policy's plan for jobs that may start now, within limits and windows.

    The policy may be asked several times. What a solver found is kept of each time, by its number, and taken
    instead where the state has it.
    """
    considered, not_yet = eligible(state, now)
    considered = off_spot_nodes(considered)
    asked = _Asked(policy, state, now)

    def decided(shown: ClusterState) -> Plan:
        return _within_limits(policy, shown, now, asked.again) if shown.limits else asked.again(shown)

    plan = decide_within(decided, considered, now) if state.windows else decided(considered)
    return with_waits(replace(plan, solved=asked.solved), not_yet)


class _Asked:
    """A policy that is asked again and again within one decision."""

    def __init__(self, policy: Policy, state: ClusterState, now: float) -> None:
        self.policy, self.now = policy, now
        self.solved: dict[str, Any] = {}
        self._known, self._times = state.solved, 0

    def again(self, state: ClusterState) -> Plan:
        number = str(self._times)  # as JSON has it
        self._times += 1
        if self._known:
            state = replace(state, solved=self._known.get(number, {}))
        plan = self.policy.decide(state, self.now)
        if plan.solved:
            self.solved[number] = plan.solved
        return plan


def _within_limits(policy: Policy, state: ClusterState, now: float, ask: Ask) -> Plan:
    if not policy.preempts or state.explain:
        return _decided_again(policy, state, now, ask)
    # Borrowed GPUs return in the order in which jobs wait, which the policy tells with its reasons alone.
    plan = _decided_again(policy, replace(state, explain=True), now, ask)
    return replace(plan, actions=tuple(action for action in plan.actions if not isinstance(action, Wait)))


def _decided_again(policy: Policy, state: ClusterState, now: float, ask: Ask) -> Plan:
    barred = _Barred(state)
    # A policy that stops jobs may free a share; one that fits an empty cluster is open until it has decided.
    nobody = replace(state, jobs=tuple(job for job in state.waiting))
    ledger = Ledger(replace(nobody, jobs=()) if policy.preempts else state)
    barred.refused_by(ledger, state.waiting)
    for _ in range(PASSES):
        plan = ask(barred.shown())
        ledger, excess = _walk(state, plan)
        accepted = {action.job for action in plan.actions if isinstance(action, Start)} - excess.keys()
        for job_id, wait in excess.items():
            barred.bar(job_id, _option_of(plan, job_id), wait)
        left = [job for job in state.waiting if job.id not in accepted]
        # A job that waits for a limit, now that others start, holds up none of those that do not.
        if not (barred.refused_by(ledger, left) and barred.leaves_any(left)) and not excess:
            break
    else:
        kept = tuple(action for action in plan.actions if action.job not in excess)
        plan = replace(plan, actions=(*kept, *excess.values()))
    if state.explain:
        decided = {action.job for action in plan.actions}
        plan = replace(plan, actions=(*plan.actions, *barred.waits(decided)))
    if not policy.preempts:
        return plan
    limit = policy.rules.limit if policy.rules else None
    plan = reclaim(state, plan, ledger, now, limit)
    return swap(state, plan, ledger, barred.why, now, limit)


class _Barred:
    """Options that jobs may not take in this decision, and why."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.jobs = {job.id: job for job in state.jobs}
        self.why: dict[str, Wait] = {}
        self._left: dict[str, tuple[Option, ...]] = {}
        self._least: dict[str, int] = {}

    def refused_by(self, ledger: Ledger, jobs: Iterable[JobInfo]) -> bool:
        """Bar what exceeds a limit; returns whether there was any."""
        found = False
        for job in jobs:
            if job.hold:
                continue
            before = self._left.get(job.id, job.options)
            waits = ledger.refusals(job, before)
            if any(waits):
                found = True
                self._left[job.id] = tuple(
                    option for option, wait in zip(before, waits, strict=True) if not wait
                )
                for option, wait in zip(before, waits, strict=True):
                    if wait:
                        self._explain(job.id, option, wait)
        return found

    def leaves_any(self, jobs: Iterable[JobInfo]) -> bool:
        """Has any of these jobs that may start an option left?"""
        return any(not job.hold and self._left.get(job.id, job.options) for job in jobs)

    def bar(self, job_id: str, option: Option, wait: Wait) -> None:
        left = self._left.get(job_id, self.jobs[job_id].options)
        self._left[job_id] = tuple(other for other in left if other != option)
        self._explain(job_id, option, wait)

    def _explain(self, job_id: str, option: Option, wait: Wait) -> None:
        if option.gpus <= self._least.get(job_id, option.gpus):  # the option that is nearest to a start
            self._least[job_id], self.why[job_id] = option.gpus, wait

    def shown(self) -> ClusterState:
        """The snapshot as the policy sees it.

        It sees no barred options, and no job whose options are all barred.
        """
        if not self._left:
            return self.state
        jobs = (self._seen(job) for job in self.state.jobs)
        return replace(self.state, jobs=tuple(job for job in jobs if job))

    def waits(self, decided: Collection[str]) -> list[Wait]:
        """The waits of the jobs that the policy did not see."""
        unseen = (job.id for job in self.state.jobs if job.id not in decided and self._seen(job) is None)
        return [self.why[job] for job in unseen]

    def _seen(self, job: JobInfo) -> JobInfo | None:
        left = self._left.get(job.id)
        if left is None:
            return job
        return replace(job, options=left) if left or job.holds else None


def _walk(state: ClusterState, plan: Plan) -> tuple[Ledger, dict[str, Wait]]:
    """The ledger after a plan, without the starts and moves that exceed a limit.

    These come with the reason.
    """
    jobs, ledger = {job.id: job for job in state.jobs}, Ledger(state)
    excess: dict[str, Wait] = {}
    for action in plan.actions:
        if isinstance(action, Preempt):
            ledger.give(jobs[action.job])
    for action in plan.actions:
        if not isinstance(action, Start | Resize):
            continue
        job = jobs[action.job]
        if (wait := ledger.refusal(job, action.option)) and not _shrinks(job, action.option):
            excess[action.job] = wait
        elif isinstance(action, Start):
            ledger.take(job, action.option)
        else:
            ledger.swap(job, action.option)
    return ledger, excess


def _shrinks(job: JobInfo, option: Option) -> bool:
    """Does a running job keep to its GPU model and to no more GPUs?

    A limit that was set since stops nobody.
    """
    held = job.holds.option if job.holds else None
    return held is not None and held.gpu_model == option.gpu_model and option.gpus <= held.gpus


def _option_of(plan: Plan, job_id: str) -> Option:
    return next(
        action.option
        for action in plan.actions
        if action.job == job_id and isinstance(action, Start | Resize)
    )
