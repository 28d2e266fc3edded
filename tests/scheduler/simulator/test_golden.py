"""One history, two callers: the live loop on rows and the simulator make the same decisions."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from portal.clock import database_now
from scheduler.core.policies import POLICIES
from scheduler.core.types import GpuId
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.services.policy import choose_policy
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import RecordedTruth
from scheduler.simulator.world.runs import Run
from tests.harness import world
from tests.harness.fake_node import FakeNode, result
from trainer.protocol import ClaimOrder

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

NODES, SLOTS, JOBS = 2, 2, 8
Decision = tuple[int, int, tuple[tuple[int, int], ...]]  # (step, job, GPUs as (node, index))


@dataclass
class _Live:
    """The portal with fake nodes; a step is: ended trainings, new jobs, one tick."""

    seed: int
    nodes: list[FakeNode] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    running: dict[int, tuple[int, FakeNode, ClaimOrder]] = field(default_factory=dict)  # job -> (end, ...)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.nodes = [world.fake_node(slots=SLOTS) for _ in range(NODES)]
        self.nodes.sort(key=lambda node: node.node_id)
        self.plan = [(rng.randint(0, 8), rng.randint(1, 9), rng.choice([1, 1, 2])) for _ in range(JOBS)]
        self.plan.sort()

    def play(self) -> None:
        owner = world.user()
        file = world.data_file(owner)
        for step in range(100):
            self._end(step)
            if len(self.decisions) == JOBS and not self.running:
                break
            for at, _, gpus in self.plan:
                if at == step:
                    self.jobs.append(world.job(owner, training_file=file, params={"number_gpus": gpus}))
            tick()
            self._take_up(step)

    def _end(self, step: int) -> None:
        for number in [number for number, (end, *_) in self.running.items() if end == step]:
            _, node, order = self.running.pop(number)
            node.sync(node.say(order, "ended", result(), outcome="succeeded"), *self._held(node))

    def _take_up(self, step: int) -> None:
        numbers = {job.pk: number for number, job in enumerate(self.jobs)}
        for place, node in enumerate(self.nodes):
            known = set(node.orders)
            node.sync(*self._held(node))
            new = sorted(set(node.orders) - known)
            for claim in new:
                order = node.orders[claim]
                assert order.spec is not None
                number = numbers[order.spec.job]
                self.running[number] = (step + self.plan[number][1], node, order)
                self.decisions.append((step, number, tuple((place, index) for index in order.spec.gpus)))
            if new:
                node.sync(*self._held(node))

    def _held(self, of: FakeNode) -> list[dict[str, Any]]:
        """Every sync names all claims that a node has."""
        return [node.say(order, "running") for _, node, order in self.running.values() if node is of]


class _Told:
    """What the live jobs' options said."""

    def __init__(self, jobs: list[Job]) -> None:
        self.told = {f"{n:02}": tuple(map(read_option, job.options)) for n, job in enumerate(jobs)}

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        return self.told[job.job_id]

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


class _Noting(Engine):
    """Remembers what was started when, and where."""

    noted: list[Decision]

    def _start(self, run: Run, now: float, option: Option, gpus: tuple[GpuId, ...]) -> None:
        super()._start(run, now, option, gpus)
        places = {name: number for number, name in enumerate(self.machines.by_id)}
        placed = tuple((places[node], index) for node, index in gpus)
        self.noted.append((int(now), int(run.job.job_id), placed))


def _simulated(live: _Live, policy: str) -> list[Decision]:
    jobs = [
        TraceJob(job_id=f"{number:02}", submit_s=at, gpus=gpus, duration_s=runs)
        for number, (at, runs, gpus) in enumerate(live.plan)
    ]
    told, cluster = _Told(live.jobs), Cluster((NodeGroup("cpu", NODES, SLOTS),))
    engine = _Noting(
        jobs, cluster, POLICIES[policy], RecordedTruth(), told, SimulationSettings(snapshots=True)
    )
    engine.noted = []
    engine.run()
    return engine.noted


@pytest.mark.parametrize("policy", ["fifo", "fifo-backfill", "sjf", "lucid"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_simulator_decides_what_the_live_loop_decided(policy: str, seed: int) -> None:
    choose_policy(name=policy, actor=world.admin(), reason="golden test", now=database_now())
    live = _Live(seed)
    live.play()
    assert len(live.decisions) == JOBS
    assert sorted(_simulated(live, policy)) == sorted(live.decisions)
