"""A history of jobs that the live loop plays with fake nodes, and the simulator after it.

The database's clock is replaced; trainings take as long as their options promise.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.core.types import Action, GpuId, Preempt
from scheduler.loop.stop_costs import restart_s
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Job
from scheduler.selectors.policy import live_policy
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import GroundTruth, Shares, Throughput
from scheduler.simulator.world.runs import Run
from scheduler.states import PriorityClass
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from trainer.protocol import ClaimOrder

NODES, SLOTS = 3, 2
# (seconds, job, its GPUs as (node, index)); no GPUs: it was stopped for others.
Decision = tuple[float, int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Size:
    """Of a history: jobs arrive within `arrivals_s`."""

    jobs: int
    arrivals_s: int
    step_s: int
    steps: int


GOLDEN = Size(jobs=6, arrivals_s=100, step_s=20, steps=100)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    at: int
    params: dict[str, int]  # with number_gpus: a gang of that size; without, the policy chooses
    priority: int
    owner: int


@dataclass
class Training:
    """A job on its nodes; its work goes on as its option promised."""

    option: Option
    claims: list[tuple[FakeNode, ClaimOrder]]
    begins: float
    before: float  # share of the job that was done before

    def done(self, at: float) -> float:
        return min(1.0, self.before + max(0.0, at - self.begins) / self.option.duration_s.value)

    def report(self, at: float) -> dict[str, Any]:
        steps, number = self.option.steps, max(1, int(self.done(at) * self.option.steps))
        rate, step_s = self.option.tokens_per_second.value, self.option.duration_s.value / steps
        return step(number, rate=rate, total_steps=steps, step_s=step_s)


@dataclass
class LiveHistory:
    """The portal with fake nodes, in steps of `size.step_s`."""

    seed: int
    clock: pytest.MonkeyPatch
    size: Size = GOLDEN
    origin: datetime = field(
        default_factory=lambda: database_now().replace(microsecond=0) - timedelta(hours=1)
    )
    jobs: list[Job] = field(default_factory=list)
    running: dict[str, Training] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # claims
    ended: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.nodes = sorted((world.fake_node(slots=SLOTS) for _ in range(NODES)), key=lambda n: n.node_id)
        self.owners: list[User] = [world.admin(), world.admin()]  # who may give every class
        size = self.size
        arrivals = sorted(rng.randrange(0, size.arrivals_s, size.step_s) for _ in range(size.jobs))
        self.plan = [planned_job(rng, at) for at in arrivals]

    def play(self) -> None:
        files = [world.data_file(owner) for owner in self.owners]
        for at in range(0, self.size.steps * self.size.step_s, self.size.step_s):
            self.clock.setattr("portal.clock.read", lambda at=at: self.origin + timedelta(seconds=at))
            self._go_on(at)
            if self.ended == self.size.jobs:
                return
            for job in self.plan:
                if job.at == at:
                    self.jobs.append(
                        world.job(
                            self.owners[job.owner],
                            training_file=files[job.owner],
                            params=job.params,
                            priority=job.priority,
                        )
                    )
            tick()
            if self._obey(at):
                tick()
                self._obey(at)

    def _go_on(self, at: float) -> None:
        """Every node reports its trainings, and the end of those that are done."""
        for pk, training in list(self.running.items()):
            if training.done(at) >= 1:
                del self.running[pk]
                self.ended += 1
                for node, order in training.claims:
                    node.sync(
                        node.say(order, "ended", training.report(at), outcome="succeeded"), *self._held(node)
                    )
        for node in self.nodes:
            node.sync(*self._held(node, at))

    def _obey(self, at: float) -> bool:
        """Trainings begin or, with a checkpoint, stop as told; returns whether any stopped."""
        wanted = set()
        for node in self.nodes:
            wanted |= {order.claim for order in node.sync(*self._held(node)).claims if order.want == "stop"}
        self._begin(at)
        stopped = [
            pk for pk, one in self.running.items() if {order.claim for _, order in one.claims} & wanted
        ]
        for pk in stopped:
            training = self.running.pop(pk)
            self.done[pk] = training.done(at)
            node, order = training.claims[0]
            node.save_checkpoint(order, int(self.done[pk] * training.option.steps))
            for node, order in training.claims:
                node.sync(node.say(order, "ended", outcome="stopped"), *self._held(node))
        return bool(stopped)

    def _begin(self, at: float) -> None:
        new: dict[str, list[tuple[FakeNode, ClaimOrder]]] = {}
        for node in self.nodes:
            for claim in sorted(node.orders.keys() - self.taken):
                self.taken.add(claim)
                spec = node.orders[claim].spec
                assert spec is not None
                new.setdefault(spec.job, []).append((node, node.orders[claim]))
        for pk, claims in new.items():
            attempts = list(Attempt.objects.filter(job=pk).order_by("fence"))
            restart = restart_s(attempts) if len(attempts) > 1 else 0.0
            self.running[pk] = Training(attempts[-1].promised, claims, at + restart, self.done.get(pk, 0.0))
        for node in self.nodes if new else ():
            node.sync(*self._held(node))

    def _held(self, of: FakeNode, at: float | None = None) -> list[dict[str, Any]]:
        """Every sync names all claims that a node has."""
        return [
            of.say(order, "running", *([training.report(at)] if at is not None else []))
            for training in self.running.values()
            for node, order in training.claims
            if node is of
        ]

    def decisions(self) -> list[Decision]:
        """As the rows tell them."""
        numbers = {job.pk: number for number, job in enumerate(self.jobs)}
        places = {node.node_id: number for number, node in enumerate(self.nodes)}
        found: list[Decision] = []
        for attempt in Attempt.objects.all():
            rows = Allocation.objects.filter(claim__attempt=attempt).values_list("gpu__node_id", "gpu__index")
            gpus = tuple(sorted((places[node], index) for node, index in rows))
            found.append((self._since(attempt.created_at), numbers[attempt.job_id], gpus))
            if attempt.outcome == "stopped" and attempt.stopped_for_id != attempt.job_id:
                assert attempt.ended_at
                found.append((self._since(attempt.ended_at), numbers[attempt.job_id], ()))
        return sorted(found)

    def _since(self, moment: datetime) -> float:
        return (moment - self.origin).total_seconds()


def planned_job(rng: random.Random, at: int) -> PlannedJob:
    params = {"max_steps": rng.randint(10, 30) * 100}
    gpus = rng.choice([0, 0, 0, 1, 4])
    if gpus:
        params |= {"number_gpus": gpus, "number_nodes": -(-gpus // SLOTS)}
    priority = rng.choice([PriorityClass.NORMAL] * 4 + [PriorityClass.LOW, PriorityClass.HIGH])
    return PlannedJob(at, params, priority, rng.randrange(2))


class AsPromised(GroundTruth):
    """A job takes as long as its option said."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        return Throughput(1 / option.duration_s.value)


class LiveOptions:
    """What the live jobs' options said."""

    def __init__(self, jobs: list[Job]) -> None:
        self.told = {job.pk: tuple(map(read_option, job.options)) for job in jobs}

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        return self.told[job.job_id]

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


class TellingEngine(Engine):
    """Remembers what was decided when."""

    told: list[tuple[float, str, tuple[GpuId, ...]]]

    def _start(
        self, run: Run, now: float, option: Option, gpus: tuple[GpuId, ...], host: Run | None = None
    ) -> None:
        super()._start(run, now, option, gpus, host)
        self.told.append((now, run.job.job_id, gpus))

    def _apply(self, actions: Any, now: float) -> None:
        made: list[Action] = list(actions)
        self.told += [(now, action.job, ()) for action in made if isinstance(action, Preempt)]
        super()._apply(made, now)


def simulate(live: LiveHistory) -> TellingEngine:
    """The same arrivals under the same policy in the simulator."""
    began = live.origin.timestamp()  # so that both round alike
    jobs = [
        TraceJob(
            job_id=job.pk,
            submit_s=began + planned.at,
            gpus=1,
            user=str(live.owners[planned.owner].pk),
            priority=planned.priority,
            restart_s=restart_s(list(job.attempts.order_by("fence"))),
        )
        for job, planned in zip(live.jobs, live.plan, strict=True)
    ]
    cluster = Cluster((NodeGroup("cpu", NODES, SLOTS),))
    engine = TellingEngine(jobs, cluster, live_policy().policy, AsPromised(), LiveOptions(live.jobs))
    engine.told = []
    engine.run()
    return engine


def told(live: LiveHistory, engine: TellingEngine) -> list[Decision]:
    """The simulator's decisions, as the live history's are told."""
    began = live.origin.timestamp()
    numbers = {job.pk: number for number, job in enumerate(live.jobs)}
    places = {name: number for number, name in enumerate(engine.machines.by_id)}
    return sorted(
        (at - began, numbers[job], tuple(sorted((places[node], index) for node, index in gpus)))
        for at, job, gpus in engine.told
    )
