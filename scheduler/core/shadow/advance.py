"""The shadow brought up to now: jobs come and end, and its policy decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from scheduler.core.ahead.drivers import Nodes
from scheduler.core.ahead.lives import PlayedJob
from scheduler.core.cycle.rounds import next_round
from scheduler.core.eligibility import OpenArrays, still_awaited
from scheduler.core.quotas import admission
from scheduler.core.shadow.state import JobFacts, ShadowState, met, new, renewed
from scheduler.core.types import ClusterState, JobInfo, Plan, Policy, Preempt, Resize, Start

MOST_DECISIONS = 30  # of one call; the last one is about everything that happened meanwhile


def advance(
    world: ShadowState, known: Mapping[str, JobFacts], cluster: ClusterState, policy: Policy, now: float
) -> None:
    """Play the time from `world.at` to `now`.

    known: every job of the snapshot, and those of the shadow that are not in it any more. cluster: the
    snapshot, with all GPUs of its nodes free; its nodes, limits and windows hold for the whole time.
    """
    if now <= world.at:
        return
    turn = _ShadowTurn(world, cluster, policy)
    arrivals = turn.meet(known)
    turn.decide()
    for number in count(1):
        turn.move_to(turn.next_event(arrivals, now) if number < MOST_DECISIONS else now)
        while arrivals and arrivals[-1].submitted_at <= turn.now:
            job = arrivals.pop()
            world.lives[job.id] = met(new(job), turn.now)
        turn.decide()
        if turn.now >= now:
            break
    world.at = now


class _ShadowTurn:
    def __init__(self, world: ShadowState, cluster: ClusterState, policy: Policy) -> None:
        self.world, self.cluster, self.policy, self.now = world, cluster, policy, world.at
        self.nodes = Nodes(cluster.nodes)
        there = {node.id for node in cluster.nodes}
        for life in world.running:
            if life.info.holds and not {node for node, _ in life.info.holds.gpus} <= there:
                self._stop(life, preempted=False, release=False)  # its node is gone
        for life in world.running:
            if life.info.holds:
                self.nodes.take(life.info.holds.option, life.info.holds.gpus)

    def meet(self, known: Mapping[str, JobFacts]) -> list[JobInfo]:
        """Take over what has really changed.

        Returns the jobs that are new, the first one last.
        """
        came = []
        for job_id, fact in known.items():
            life = self.world.lives.get(job_id)
            if life is None:
                if fact.info is not None:
                    came.append(fact.info)
                continue
            self._scale(life, fact.scale)
            if fact.cancelled:
                self._leave(life)
            elif fact.info is not None:
                life.info = renewed(life, fact.info)
                self.world.away.discard(job_id)
            elif not fact.ended and life.ended_at is None:  # it is paused
                if life.info.holds is not None:
                    self._stop(life, preempted=False)
                self.world.away.add(job_id)
        return sorted(came, key=lambda job: (job.submitted_at, job.id), reverse=True)

    def next_event(self, arrivals: list[JobInfo], now: float) -> float:
        times = [life.ends_at for life in self.world.running]
        times += [arrivals[-1].submitted_at] if arrivals else []
        times += [life.info.begins_at for life in self.world.waiting if life.info.begins_at is not None]
        if self.policy.round_s and self.world.decided_at is not None:
            times.append(self.world.decided_at + self.policy.round_s)
        return min((at for at in times if self.now < at < now), default=now)

    def move_to(self, at: float) -> None:
        self.now = at
        for life in self.world.running:
            if life.ends_at <= at:
                self._end(life, life.ends_at)

    def decide(self) -> None:
        if next_round(self.world.decided_at, self.policy.round_s, self.now) > self.now:
            return
        jobs = tuple(life.seen(self.now) for life in (*self.world.waiting, *self.world.running))
        if not jobs:
            return
        state = replace(
            self.cluster,
            jobs=jobs,
            nodes=self.nodes.views(),
            memory=self.world.memory,
            explain=False,
            solved={},
            used=None if self.world.memory else self.cluster.used,
        )
        plan = admission.decide(self.policy, state, self.now)
        self.world.memory, self.world.decided_at = plan.memory, self.now
        self._apply(plan)

    def _apply(self, plan: Plan) -> None:
        lives = self.world.lives
        placed: list[Start | Resize] = []
        for action in plan.actions:
            if isinstance(action, Preempt):
                self._stop(lives[action.job], preempted=True)
            elif isinstance(action, Resize):
                held = lives[action.job].info.holds
                if held is not None and (held.option, {*held.gpus}) != (action.option, {*action.gpus}):
                    self._stop(lives[action.job], preempted=False)
                    placed.append(action)
            elif isinstance(action, Start):
                placed.append(action)
        for start in placed:
            lives[start.job].start(self.now, start.option, start.gpus)
            self.nodes.take(start.option, start.gpus)

    def _stop(self, life: PlayedJob, *, preempted: bool, release: bool = True) -> None:
        if release and life.info.holds:
            self.nodes.give(life.info.holds.option, life.info.holds.gpus)
        life.stop(self.now, preempted=preempted)
        self.world.stops[life.info.id] = self.world.stops.get(life.info.id, 0) + 1

    def _end(self, life: PlayedJob, at: float) -> None:
        if life.info.holds:
            self.nodes.give(life.info.holds.option, life.info.holds.gpus)
        life.info = replace(life.info, holds=None, work_left=0.0)
        life.ended_at = at
        self._let_follow(life.info)

    def _leave(self, life: PlayedJob) -> None:
        """Take out a job that was cancelled."""
        if life.info.holds:
            self.nodes.give(life.info.holds.option, life.info.holds.gpus)
        del self.world.lives[life.info.id]
        self._let_follow(life.info)

    def _let_follow(self, gone: JobInfo) -> None:
        """Jobs that come after it, or its array, wait for less once that has ended."""
        lives = self.world.lives.values()
        ended = OpenArrays([gone, *(life.info for life in lives if life.ended_at is None)]).end(gone)
        for life in lives:
            if not life.info.awaits:
                continue
            life.info = replace(life.info, awaits=still_awaited(life.info.awaits, ended))

    def _scale(self, life: PlayedJob, scale: float | None) -> None:
        """Measurements made since correct the duration; work that is done stays done."""
        if scale is None or scale == life.scale or life.ended_at is not None:
            return
        life.correct(self.now, scale)
