"""A world played again, with a change for one waiting job from a moment on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from benchmarks.scheduler.ahead.terms import Terms, Within
from benchmarks.scheduler.ahead.worlds import ERROR, RESTART_S, World
from knowledge.core.domain.types import Option
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.helpful import HelpfulChange
from scheduler.core.changes.possible import ChangeKind, PossibleChange
from scheduler.core.placement.fit import Shares
from scheduler.core.types import ClusterState, JobInfo, Plan, Start
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import Act, ActKind, SimulationSettings
from scheduler.simulator.world.ground_truth import RecordedTruth, Throughput
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from scheduler.states import PriorityClass

SPEED_UP = 0.85  # speed is so many GPUs to this power
SIZES = (0.25, 0.5, 2.0)  # of the GPUs that a job asked for
LEAST = 1e-6  # of a job, which counts as nothing
JUST_BEFORE_S = 1.0  # a job that shall end now has ended when the others are decided on
AT_ONCE = 1e9  # share of a job per second with which one ends that shall end now


class Kept(NamedTuple):
    """A change, and when the job started with it and without it, in s after `now`."""

    change: HelpfulChange
    now: float
    start: float
    without: float


def replayed(
    world: World, known: PlayInput, job: JobInfo, possible: PossibleChange, change: HelpfulChange
) -> Kept | None:
    """Play the world again with the change; None if the job never started without it."""
    policy = ChangedPolicy(world, known, job.id, possible, change)
    cluster, jobs = world.scenario.cluster, world.scenario.trace.jobs
    truth = Stretching(_ends_now(known, job, possible))
    predictions = PredictionModel(
        Fidelity.PERFORMANCE,
        world.scenario.truth(Fidelity.PERFORMANCE),
        cluster,
        error=ERROR,
        seed=world.seed,
    )
    settings = SimulationSettings(restart_s=RESTART_S, acts=_paused(known, job, possible))
    engine = Engine(jobs, cluster, policy, truth, predictions, settings)
    with suppress(Started):
        engine.run()
    without = world.next_start(job.id, known.now)
    if without is None:
        return None
    if policy.start is None:
        raise AssertionError(f"{job.id} never started")
    return Kept(change, known.now, policy.start - known.now, without - known.now)


def stretched(option: Option, size: float) -> Option:
    """The option on more or fewer GPUs, on as many nodes as those need."""
    gpus = int(option.gpus * size)
    config = replace(option.config, number_gpus=gpus, number_nodes=max(1, -(-gpus // 8)))
    return replace(option, config=config, duration_s=option.duration_s.scaled(_slower(option.gpus, gpus)))


def _slower(requested: int, gpus: int) -> float:
    return (requested / gpus) ** SPEED_UP if gpus else 1.0


def _paused(known: PlayInput, job: JobInfo, possible: PossibleChange) -> tuple[Act, ...]:
    """A running job that shall be out of the way is paused for good."""
    if possible.kind is not ChangeKind.JOB or possible.subject in job.awaits:
        return ()
    return (Act(known.now - JUST_BEFORE_S, possible.subject, ActKind.PAUSE),)


def _ends_now(known: PlayInput, job: JobInfo, possible: PossibleChange) -> dict[str, float]:
    """The job that others come after, with a share of it that is done just before.

    Under a policy that stops jobs it may have been as far before, and lost it.
    """
    if possible.kind is not ChangeKind.JOB or possible.subject not in job.awaits:
        return {}
    ends = (one for one in known.state.jobs if one.id == possible.subject)
    return {one.id: max(LEAST, 1 - one.work_left - LEAST) for one in ends}


@dataclass(frozen=True, slots=True)
class Stretching(RecordedTruth):
    """Jobs run on other numbers of GPUs than they asked for as well.

    ends_at: shares done at which jobs end at once.
    """

    ends_at: dict[str, float]

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        if job.duration_s is None:
            return None
        rate = 1 / (job.duration_s * _slower(job.whole_gpus, option.gpus))
        until = self.ends_at.get(job.job_id, 1.0)
        return Throughput(rate, until) if done < until else Throughput(AT_ONCE)


class Started(Exception):
    """The job has started; nothing more is asked."""


class ChangedPolicy:
    """A policy that is shown a queue with the change from a moment on."""

    def __init__(
        self, world: World, known: PlayInput, job: str, possible: PossibleChange, change: HelpfulChange
    ) -> None:
        self.inner, self.now, self.job, self.change = world.policy, known.now, job, change
        self.before = Within(world.policy, world.terms)
        after = Terms(world.terms.spot, possible.given.state.limits)
        self.after = Within(world.policy, after if after != world.terms else world.terms)
        self.start: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def decide(self, state: ClusterState, now: float) -> Plan:
        if now < self.now - JUST_BEFORE_S:
            return self.before.decide(state, now)
        jobs = tuple(self._changed(job) if job.id == self.job else job for job in state.jobs)
        shown = ClusterState(jobs=jobs, nodes=state.nodes, memory=state.memory, explain=False)
        plan = self.after.decide(shown, now)
        if any(isinstance(action, Start) and action.job == self.job for action in plan.actions):
            self.start = now
            raise Started
        return plan

    def _changed(self, job: JobInfo) -> JobInfo:
        if word := self.change.change.get("priority"):
            return replace(job, priority=PriorityClass.of_word(word))
        if self.change.kind is ChangeKind.SPOT:
            return replace(job, spot=True)
        option = self.change.option
        return replace(job, options=(option,)) if option and "params" in self.change.change else job
