"""Maintenance windows and reservations: one rule for every policy.

A window closes nodes during a time, to everybody or to all but a team. Nothing starts there whose upper
forecast reaches into it, unless the job can be stopped with a checkpoint and has time to do some work before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf

from knowledge.core.domain.types import Option
from scheduler.core.limits import Window
from scheduler.core.types import Action, ClusterState, JobInfo, NodeInfo, Plan, Resize, Start, Wait
from scheduler.states import WaitState

LEAST_RUN_S = 60.0  # before a window, besides start-up and stop
PASSES = 3  # the last one is cautious, so that it is never in vain

Closed = dict[str, frozenset[str]]  # by job: nodes that it must keep away from


def decide_within(decide: Callable[[ClusterState], Plan], state: ClusterState, now: float) -> Plan:
    """The policy's plan without starts and moves that reach into a window.

    decide: the policy's decision, within all other limits. A job that would be placed where it may not is
    kept off these nodes, and the policy decides again.
    """
    reach = _Reach(state, now)
    closed = {job.id: reach.closed(job, every=True) for job in state.jobs}
    for number in range(PASSES):
        plan = decide(_shown(state, reach, closed))
        wrong = {action.job: nodes for action in plan.actions if (nodes := reach.of_action(action))}
        if not wrong:
            return plan
        if number == PASSES - 2:
            closed = {job.id: closed[job.id] | reach.closed(job, every=False) for job in state.jobs}
        closed |= {job: closed[job] | nodes for job, nodes in wrong.items()}
    left = tuple(action for action in plan.actions if action.job not in wrong)
    return replace(plan, actions=(*left, *(reach.wait(job) for job in wrong)))


class _Reach:
    """Which jobs would still run on which nodes when a window closes them."""

    def __init__(self, state: ClusterState, now: float) -> None:
        self.now = now
        self.windows = [window for window in state.windows if window.ends_at > now]
        self.jobs: Mapping[str, JobInfo] = {job.id: job for job in state.jobs}

    def closed(self, job: JobInfo, *, every: bool) -> frozenset[str]:
        """Nodes on which every one of its options, or any one, would reach into a window."""
        judge = all if every else any
        return frozenset[str]().union(
            *(
                window.nodes
                for window in self.windows
                if job.options and judge(self._into(window, job, option) for option in job.options)
            )
        )

    def of_action(self, action: Action) -> frozenset[str]:
        """Nodes on which this start or move reaches into a window."""
        if not isinstance(action, Start | Resize):
            return frozenset()
        job, nodes = self.jobs[action.job], frozenset(node for node, _ in action.gpus)
        return frozenset[str]().union(
            *(window.nodes & nodes for window in self.windows if self._into(window, job, action.option))
        )

    def shut(self, node: NodeInfo) -> bool:
        """Is the node closed to everybody now?"""
        return any(
            not window.team and window.closes_at <= self.now and node.id in window.nodes
            for window in self.windows
        )

    def reasons(self, job: JobInfo, nodes: frozenset[str]) -> str:
        """The windows that keep a job off these nodes, in words for its owner."""
        mine = (window for window in self.windows if not window.admits(job.team) and window.nodes & nodes)
        return " ".join(window.in_words for window in mine)

    def wait(self, job_id: str) -> Wait:
        job = self.jobs[job_id]
        return Wait(job_id, WaitState.WINDOW, self.reasons(job, self.closed(job, every=False)))

    def _into(self, window: Window, job: JobInfo, option: Option) -> bool:
        if window.admits(job.team):
            return False
        left_s = window.closes_at - self.now
        if left_s <= 0:
            return True
        if _upper_s(job, option) <= left_s:
            return False
        return not job.borrows or left_s < LEAST_RUN_S + 2 * max(option.startup_s, job.restart_s)


def _upper_s(job: JobInfo, option: Option) -> float:
    """Within what time it ends with this option.

    It is the upper end of its forecast, or its time limit.
    """
    duration = option.duration_s
    whole_s = duration.value if duration.high is None else duration.high
    upper_s = option.startup_s + job.work_left * whole_s if whole_s > 0 else inf
    return upper_s if job.run_left_s is None else min(upper_s, job.run_left_s)


def _shown(state: ClusterState, reach: _Reach, closed: Closed) -> ClusterState:
    """The snapshot as the policy sees it.

    Jobs are kept off nodes, and no node is ready that is closed to everybody.
    """
    return replace(
        state,
        jobs=tuple(_kept_off(job, reach, closed[job.id]) for job in state.jobs),
        nodes=tuple(replace(node, ready=False) if reach.shut(node) else node for node in state.nodes),
    )


def _kept_off(job: JobInfo, reach: _Reach, nodes: Iterable[str]) -> JobInfo:
    nodes = frozenset(nodes)
    return replace(job, avoids=job.avoids | nodes, closed=reach.reasons(job, nodes)) if nodes else job
