"""A job of a higher class takes the place of a lower one at the same limit.

A limit is met by stopping jobs that count against it; policies look for GPUs alone, so they find others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from knowledge.core.domain.types import Option
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.quotas.ledger import Ledger
from scheduler.core.quotas.reclaim import Keeping, after, changed, may_be_stopped, with_starts
from scheduler.core.stopping import StopReason
from scheduler.core.types import ClusterState, GpuId, JobInfo, Plan, Preempt, Start, Wait
from scheduler.states import WaitState

RULES = CycleOptions(preempts=True)
SHARES = {WaitState.QUOTA_TEAM: "team", WaitState.QUOTA_USER: "user"}  # code: whose limit it is


def swap(
    state: ClusterState,
    plan: Plan,
    ledger: Ledger,
    refused: Mapping[str, Wait],
    now: float,
    stops: int | None = None,
) -> Plan:
    """Stop jobs of lower classes for those that a limit refuses.

    The limit is of the same team or person. Jobs that were stopped `stops` times are left alone: nobody is
    owed their place.

    refused: why jobs may not start. ledger: what is held after the plan; it is brought up to date.
    """
    acted = {action.job for action in plan.actions if not isinstance(action, Wait)}
    waiting = [job for job in state.waiting if job.id in refused and job.id not in acted]
    if not waiting:
        return plan
    swaps = _Swaps(state, plan, ledger, now, Keeping(stops))
    for job in sorted(waiting, key=lambda job: (-job.priority, job.submitted_at, job.id)):
        whose = SHARES.get(refused[job.id].code)
        if whose and RULES.may_evict(job, now):
            swaps.serve(job, whose)
    return with_starts(plan, swaps.stopped, swaps.started)


class _Swaps:
    def __init__(self, state: ClusterState, plan: Plan, ledger: Ledger, now: float, keeping: Keeping) -> None:
        self.ledger, self.nodes = ledger, after(state, plan)
        able = (job for job in may_be_stopped(state, plan, now) if not keeping.is_reached(job))
        self.able = sorted(able, key=keeping)
        self.stopped: list[Preempt] = []
        self.started: list[Start] = []
        self._failed: set[tuple[object, ...]] = set()

    def serve(self, job: JobInfo, whose: str) -> None:
        """Start the job in the place of as few and as late ones as will do.

        The lowest class goes first.
        """
        share = getattr(job, whose)
        if not share or not self.able or job.priority <= self.able[-1].priority:
            return
        for option in job.options:
            alike = (option.place, option.config.tuning, whose, share, job.user, job.priority, job.borrows,
                     job.only_node, job.avoids, job.topology, job.level)  # fmt: skip
            if alike in self._failed:
                continue
            lower = [one for one in self.able if getattr(one, whose) == share and one.priority < job.priority]
            if self._start(job, option, lower):
                self._failed.clear()
                return
            self._failed.add(alike)

    def _start(self, job: JobInfo, option: Option, lower: list[JobInfo]) -> bool:
        gone: list[JobInfo] = []
        for victim in reversed(lower):
            self.ledger.give(victim)
            gone.append(victim)
            if self._place(job, option, gone):
                break
        else:
            self._bring_back(gone)
            return False
        for victim in list(reversed(gone)):  # the best ranked one stays if the others are enough
            self._bring_back([victim])
            fewer = [one for one in gone if one is not victim]
            if fewer and self._place(job, option, fewer):
                gone = fewer
            else:
                self.ledger.give(victim)
        self._carry_out(job, option, gone)
        return True

    def _place(self, job: JobInfo, option: Option, gone: list[JobInfo]) -> tuple[GpuId, ...] | None:
        """GPUs of which each job that goes leaves some.

        So the start waits for all of them, and the limit is kept at every moment.
        """
        if self.ledger.refusal(job, option):
            return None
        left = [set(victim.holds.gpus) for victim in gone if victim.holds]
        freed = set().union(*left)
        for nodes in ([replace(node, free=()) for node in self.nodes], self.nodes):
            gpus = FreeGpus(changed(tuple(nodes), freed, set())).place(option, job)
            if gpus and all(held & set(gpus) for held in left):
                return gpus
        return None

    def _bring_back(self, victims: list[JobInfo]) -> None:
        for victim in victims:
            if victim.holds:
                self.ledger.take(victim, victim.holds.option)

    def _carry_out(self, job: JobInfo, option: Option, gone: list[JobInfo]) -> None:
        gpus = self._place(job, option, gone) or ()
        self.ledger.take(job, option)
        self.stopped += [Preempt(victim.id, StopReason.LIMIT) for victim in gone]
        self.started.append(Start(job.id, option, gpus))
        self.able = [one for one in self.able if one not in gone]
        freed = {gpu for victim in gone if victim.holds for gpu in victim.holds.gpus}
        self.nodes = changed(self.nodes, freed, set(gpus))
