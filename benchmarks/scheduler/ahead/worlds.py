"""Public traces in the simulator, and what a portal would know of them."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scheduler.ahead.terms import NO_TERMS, Terms, Within, chained, mixed_terms
from knowledge.core.domain.types import Interval, Option
from knowledge.core.recommend.duration import NORMAL_80
from scheduler.core.ahead.play_input import PastArrivals, PlayInput
from scheduler.core.types import ClusterState, JobInfo, Plan, Policy, Start
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.importers.registry import load_trace
from scheduler.simulator.inputs.trace import Trace, TraceJob
from scheduler.simulator.policy_drivers import Snapshots
from scheduler.simulator.scenario import Scenario
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.nodes import Machines
from scheduler.simulator.world.predictions import Fidelity, PredictionModel, lognormal_sigma
from scheduler.simulator.world.runs import Run

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
FILES = {
    "venus": "helios_venus/bench_venus_sept_5000.csv.gz",
    "philly": "philly/philly_jobs.csv.gz",
    "pai": "alibaba/pai2020_first10000.csv.gz",
}
CLUSTER = "gpu:8x8"
LARGEST = 32  # GPUs of a job
LONGEST_S = 43_200.0  # of a job: a few that run for weeks would leave a small cluster empty otherwise
SKIPPED = {"venus": 500, "philly": 20_000, "pai": 500}  # jobs at the beginning of a trace
ERROR = 0.25  # median error of a predicted duration
LEFT_ERROR = 0.12  # of what a running job has left
RESTART_S = 60.0
WARM, COOL = 0.25, 0.9  # shares of the time of arrivals between which moments are drawn


def with_bounds(option: Option, error: float) -> Option:
    """The option with the 80 % interval of a duration whose median error is known."""
    return replace(option, duration_s=_around(option.duration_s.value, error))


def _around(value: float, error: float) -> Interval:
    factor = math.exp(NORMAL_80 * lognormal_sigma(error))
    return Interval(value, value / factor, value * factor)


class Moment(NamedTuple):
    """A state as a policy was shown it, and what its running jobs truly had left."""

    at: float
    state: ClusterState
    left_s: dict[str, float]


class Watched:
    """A policy that keeps some of the states in which it left jobs waiting.

    Each is as likely as any other.
    """

    def __init__(self, inner: Policy, moments: int, between: tuple[float, float], seed: int) -> None:
        self.inner, self.moments, self.between = inner, moments, between
        self.engine: Engine | None = None
        self.kept: list[Moment] = []
        self.starts: dict[str, list[float]] = defaultdict(list)
        self._rng, self._met = random.Random(seed), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def decide(self, state: ClusterState, now: float) -> Plan:
        plan = self.inner.decide(state, now)
        started = [action.job for action in plan.actions if isinstance(action, Start)]
        if self.between[0] <= now <= self.between[1] and len(state.waiting) > len(started):
            self._keep(now)
        for job in started:
            self.starts[job].append(now)
        return plan

    def next_start(self, job: str, after: float) -> float | None:
        return next((at for at in self.starts[job] if at > after), None)

    def _keep(self, now: float) -> None:
        """Reservoir sampling, of states with the jobs that may not start yet."""
        self._met += 1
        place = len(self.kept) if len(self.kept) < self.moments else self._rng.randrange(self._met)
        if place >= self.moments or self.engine is None or not isinstance(self.engine.decider, Snapshots):
            return
        state = self.engine.decider.state(now)
        whole = ClusterState(jobs=tuple(state.jobs), nodes=state.nodes, memory=state.memory)
        left_s = {job.id: self.engine.runs[job.id].change_at() - now for job in whole.running}
        self.kept[place : place + 1] = [Moment(now, whole, left_s)]


@dataclass(slots=True)
class World:
    """A trace on the cluster under a policy.

    `runs` are the lives of its jobs once it was played.
    """

    scenario: Scenario
    policy: Policy
    seed: int = 1
    terms: Terms = NO_TERMS
    runs: dict[str, Run] = field(default_factory=dict)
    watched: Watched | None = None

    def play(self, moments: int) -> Iterator[PlayInput]:
        """Play it to its end, and yield what was known at random moments."""
        span_s = self.scenario.trace.span_s
        within = Within(self.policy, self.terms)
        watched = self.watched = Watched(within, moments, (WARM * span_s, COOL * span_s), self.seed)
        truth = self.scenario.truth(Fidelity.PERFORMANCE)
        cluster, jobs = self.scenario.cluster, self.scenario.trace.jobs
        predictions = PredictionModel(Fidelity.PERFORMANCE, truth, cluster, error=ERROR, seed=self.seed)
        settings = SimulationSettings(restart_s=RESTART_S)
        engine = watched.engine = Engine(jobs, cluster, watched, truth, predictions, settings)
        engine.run()
        self.runs = engine.runs
        past = tuple(self.terms.of(_as_submitted(job, predictions)) for job in jobs)
        for at, state, left_s in sorted(watched.kept, key=lambda moment: moment.at):
            before = tuple(job for job in past if job.submitted_at < at)
            yield PlayInput(
                state=self.terms.shown(replace(state, jobs=tuple(map(_bounded, state.jobs)))),
                now=at, policy=self.policy,
                past=PastArrivals(begins_at=jobs[0].submit_s, ends_at=at, jobs=before),
                left={job: self._measured(job, left) for job, left in left_s.items()},
            )  # fmt: skip

    def next_start(self, job: str, after: float) -> float | None:
        """When it started then, if it had to wait."""
        return self.watched.next_start(job, after) if self.watched else None

    def _measured(self, job: str, left_s: float) -> Interval:
        luck = random.Random(f"{self.seed}/left/{job}").gauss()
        return _around(left_s * math.exp(lognormal_sigma(LEFT_ERROR) * luck), LEFT_ERROR)


def _as_submitted(job: TraceJob, predictions: PredictionModel) -> JobInfo:
    options = tuple(with_bounds(option, ERROR) for option in predictions.options(job))
    return JobInfo(
        id=job.job_id, submitted_at=job.submit_s, options=options, user=job.user, team=job.group,
        restart_s=RESTART_S,
    )  # fmt: skip


def _bounded(job: JobInfo) -> JobInfo:
    options = tuple(with_bounds(option, ERROR) for option in job.options)
    holds = job.holds and replace(job.holds, option=with_bounds(job.holds.option, ERROR))
    return replace(job, options=options, holds=holds)


class Part(NamedTuple):
    """A part of a trace: its number among so many, in the order of time. They may overlap."""

    number: int
    of: int


@cache
def _jobs(trace: str) -> tuple[TraceJob, ...]:
    """The jobs of a trace that count, without the many at its beginning."""
    found = [
        replace(job, pred_duration_s=None, priority=0, gpu_type="", nodes=0)
        for job in load_trace(DATA / FILES[trace], None).jobs
        if job.whole_gpus <= LARGEST and 60 <= (job.duration_s or 0.0) <= LONGEST_S
    ]
    return tuple(found[SKIPPED[trace] :])


def opened(trace: str, load: float, jobs: int, policy: Policy, part: Part, *, mixed: bool = False) -> World:
    """Some jobs of a trace on 64 GPUs, with errors of predictions of their own.

    Their arrivals are drawn together until the cluster has that load. mixed: with spot nodes, quotas, limits
    and dependencies.
    """
    every = _jobs(trace)
    begin = part.number * ((len(every) - jobs) // max(1, part.of - 1))
    found = every[begin : begin + jobs]
    cluster = parse_cluster(CLUSTER)
    offered = Scenario(Trace(jobs=found, refused=(), meta={"source": trace}), cluster).load
    first = found[0].submit_s
    moved = tuple(replace(job, submit_s=(job.submit_s - first) * offered / load) for job in found)
    terms = mixed_terms(node.id for node in Machines(cluster).views()) if mixed else NO_TERMS
    moved = chained(moved) if mixed else moved
    scenario = Scenario(Trace(jobs=moved, refused=(), meta={"source": trace}), cluster)
    return World(scenario, policy, seed=part.number + 1, terms=terms)
