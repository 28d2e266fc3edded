"""One history, two callers.

The live loop on rows and the simulator make the same decisions.
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
from scheduler.core.policies import POLICIES
from scheduler.core.types import GpuId
from scheduler.loop.tick import tick
from scheduler.models import DatasetFile, Job
from scheduler.services.policy import choose_policy
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import RecordedTruth
from scheduler.simulator.world.runs import Run
from tests.harness import world
from tests.harness.fake_node import FakeNode, result
from trainer.protocol import ClaimOrder

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

NODES, SLOTS, JOBS, OWNERS = 3, 2, 12, 2
DUE_S = 1e5  # far enough that every option keeps it
Decision = tuple[int, int, tuple[tuple[int, int], ...]]  # (step, job, GPUs as (node, index))
# The others judge running jobs, whose ends are measured live and known in the simulator.
POLICIES_ALIKE = ("fifo", "fifo-backfill", "sjf", "lucid", "fair", "edd", "mdd", "mddc")


@dataclass(frozen=True, slots=True)
class _Planned:
    """A job of the history; times in steps of a second."""

    at: int
    runs: int
    gpus: int  # more than a node has: over as few nodes as hold them
    owner: int
    due: float


@dataclass
class _Live:
    """The portal with fake nodes; a step is a second: ended trainings, new jobs, one tick."""

    seed: int
    clock: pytest.MonkeyPatch
    origin: datetime = field(default_factory=database_now)
    nodes: list[FakeNode] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    running: dict[int, list[tuple[FakeNode, ClaimOrder]]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    owners: list[User] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.nodes = [world.fake_node(slots=SLOTS) for _ in range(NODES)]
        self.nodes.sort(key=lambda node: node.node_id)
        self.plan = sorted(
            (
                _Planned(
                    rng.randint(0, 9),
                    rng.randint(1, 9),
                    rng.choice([1, 1, 2, 4]),
                    rng.randrange(OWNERS),
                    DUE_S + rng.randint(0, 60),
                )
                for _ in range(JOBS)
            ),
            key=lambda job: job.at,
        )

    def play(self) -> None:
        self.owners = [world.user() for _ in range(OWNERS)]
        files = [world.data_file(owner) for owner in self.owners]
        for step in range(100):
            now = self.origin + timedelta(seconds=step)
            self.clock.setattr("portal.clock.read", lambda now=now: now)
            self._end(step)
            if len(self.decisions) == JOBS and not self.running:
                break
            for job in self.plan:
                if job.at == step:
                    self.jobs.append(self._submit(job, files))
            tick()
            self._take_up(step)

    def _submit(self, job: _Planned, files: list[DatasetFile]) -> Job:
        return world.job(
            self.owners[job.owner],
            training_file=files[job.owner],
            params={"number_gpus": job.gpus, "number_nodes": -(-job.gpus // SLOTS)},
            deadline_at=self.origin + timedelta(seconds=job.due),
        )

    def _end(self, step: int) -> None:
        for number in [number for number, end in self.ends.items() if end == step and number in self.running]:
            for node, order in self.running.pop(number):
                node.sync(node.say(order, "ended", result(), outcome="succeeded"), *self._held(node))

    def _take_up(self, step: int) -> None:
        numbers = {job.pk: number for number, job in enumerate(self.jobs)}
        placed: dict[int, tuple[tuple[int, int], ...]] = {}
        for place, node in enumerate(self.nodes):
            known = set(node.orders)
            node.sync(*self._held(node))
            for claim in sorted(set(node.orders) - known):
                order = node.orders[claim]
                assert order.spec is not None
                number = numbers[order.spec.job]
                self.running.setdefault(number, []).append((node, order))
                placed[number] = (*placed.get(number, ()), *((place, index) for index in order.spec.gpus))
        for number, gpus in placed.items():
            self.ends[number] = step + self.plan[number].runs
            self.decisions.append((step, number, gpus))
        for node in self.nodes if placed else ():
            node.sync(*self._held(node))

    def _held(self, of: FakeNode) -> list[dict[str, Any]]:
        """Every sync names all claims that a node has."""
        held = [order for claims in self.running.values() for node, order in claims if node is of]
        return [of.say(order, "running") for order in held]


class _Told:
    """What the live jobs' options said."""

    def __init__(self, jobs: list[Job]) -> None:
        self.told = {job.pk: tuple(map(read_option, job.options)) for job in jobs}

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        return self.told[job.job_id]

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


class _Noting(Engine):
    """Remembers what was started when, and where."""

    noted: list[tuple[int, str, tuple[tuple[int, int], ...]]]

    def _start(self, run: Run, now: float, option: Option, gpus: tuple[GpuId, ...]) -> None:
        super()._start(run, now, option, gpus)
        places = {name: number for number, name in enumerate(self.machines.by_id)}
        placed = tuple(sorted((places[node], index) for node, index in gpus))
        self.noted.append((int(now), run.job.job_id, placed))


def _simulated(live: _Live, policy: str) -> list[Decision]:
    jobs = [
        TraceJob(
            job_id=job.pk,
            submit_s=planned.at,
            gpus=planned.gpus,
            duration_s=planned.runs,
            user=str(live.owners[planned.owner].pk),
            deadline_s=planned.due,
        )
        for job, planned in zip(live.jobs, live.plan, strict=True)
    ]
    told, cluster = _Told(live.jobs), Cluster((NodeGroup("cpu", NODES, SLOTS),))
    engine = _Noting(jobs, cluster, POLICIES[policy], RecordedTruth(), told)
    engine.noted = []
    engine.run()
    numbers = {job.pk: number for number, job in enumerate(live.jobs)}
    return [(at, numbers[job], gpus) for at, job, gpus in engine.noted]


@pytest.mark.parametrize(("policy", "seed"), [(policy, seed) for seed, policy in enumerate(POLICIES_ALIKE)])
def test_the_simulator_decides_what_the_live_loop_decided(
    policy: str, seed: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gangs over nodes, users, due times, and memory from one decision to the next."""
    settings.MAX_NODES_PER_JOB = 2
    choose_policy(name=policy, actor=world.admin(), reason="golden test", now=database_now())
    live = _Live(seed, monkeypatch)
    live.play()
    assert len(live.decisions) == JOBS
    assert sorted(_simulated(live, policy)) == sorted(live.decisions)
