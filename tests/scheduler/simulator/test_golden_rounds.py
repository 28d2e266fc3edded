"""One history, two callers: policies that stop, move and resize running jobs.

The live loop with fake nodes and the simulator make the same decisions, round by round.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.core.types import Action, GpuId, Preempt
from scheduler.loop.stop_costs import restart_s
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Job
from scheduler.selectors.policy import live_policy
from scheduler.services.policy import choose_policy
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import GroundTruth, Shares, Throughput
from scheduler.simulator.world.runs import Run
from scheduler.states import PriorityClass
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.harness.invariants import assert_sound
from trainer.protocol import ClaimOrder

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

NODES, SLOTS, JOBS = 3, 2, 6
STEP_S, STEPS = 20, 100  # of the history; a round lasts two
RANKS: dict[str, Any] = {"round_s": 40, "min_run_s": 40, "cooldown_s": 20}
CHOICES: dict[str, dict[str, Any]] = {
    "sia": {"round_s": 40, "min_run_s": 40},
    "gavel": {"round_s": 40, "min_run_s": 40, "reset_s": 80},
    "tiresias": {**RANKS, "limits_gpu_s": [60, 300]},
    "srtf": RANKS,
    "las": RANKS,
    "gittins": RANKS,
}
# (seconds, job, its GPUs as (node, index)); no GPUs: it was stopped for others.
Decision = tuple[float, int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class _Planned:
    at: int
    params: dict[str, int]  # with number_gpus: a gang of that size; without, the policy chooses
    priority: int
    owner: int


@dataclass
class _Training:
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
class _Live:
    """The portal with fake nodes, in steps of `STEP_S`."""

    seed: int
    clock: pytest.MonkeyPatch
    origin: datetime = field(
        default_factory=lambda: database_now().replace(microsecond=0) - timedelta(hours=1)
    )
    jobs: list[Job] = field(default_factory=list)
    running: dict[str, _Training] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # claims
    ended: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.nodes = sorted((world.fake_node(slots=SLOTS) for _ in range(NODES)), key=lambda n: n.node_id)
        self.owners: list[User] = [world.admin(), world.admin()]  # who may give every class
        self.plan = [_planned(rng, at) for at in sorted(rng.randrange(0, 100, STEP_S) for _ in range(JOBS))]

    def play(self) -> None:
        files = [world.data_file(owner) for owner in self.owners]
        for at in range(0, STEPS * STEP_S, STEP_S):
            self.clock.setattr("portal.clock.read", lambda at=at: self.origin + timedelta(seconds=at))
            self._go_on(at)
            if self.ended == JOBS:
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
            self.running[pk] = _Training(attempts[-1].promised, claims, at + restart, self.done.get(pk, 0.0))
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


def _planned(rng: random.Random, at: int) -> _Planned:
    params = {"max_steps": rng.randint(10, 30) * 100}
    gpus = rng.choice([0, 0, 0, 1, 4])
    if gpus:
        params |= {"number_gpus": gpus, "number_nodes": -(-gpus // SLOTS)}
    priority = rng.choice([PriorityClass.NORMAL] * 4 + [PriorityClass.LOW, PriorityClass.HIGH])
    return _Planned(at, params, priority, rng.randrange(2))


class _AsPromised(GroundTruth):
    """A job takes as long as its option said."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        return Throughput(1 / option.duration_s.value)


class _LiveOptions:
    """What the live jobs' options said."""

    def __init__(self, jobs: list[Job]) -> None:
        self.told = {job.pk: tuple(map(read_option, job.options)) for job in jobs}

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        return self.told[job.job_id]

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        return left

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


class _Told(Engine):
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


def _simulated(live: _Live) -> list[Decision]:
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
    engine = _Told(jobs, cluster, live_policy().policy, _AsPromised(), _LiveOptions(live.jobs))
    engine.told = []
    engine.run()
    numbers = {job.pk: number for number, job in enumerate(live.jobs)}
    places = {name: number for number, name in enumerate(engine.machines.by_id)}
    return sorted(
        (at - began, numbers[job], tuple(sorted((places[node], index) for node, index in gpus)))
        for at, job, gpus in engine.told
    )


@pytest.mark.parametrize(
    ("policy", "seed"),
    [
        ("sia", 3),
        ("gavel", 0),
        *(pytest.param(name, 0, marks=pytest.mark.slow) for name in ("tiresias", "srtf", "las", "gittins")),
    ],
)
def test_the_simulator_stops_and_resizes_what_the_live_loop_does(
    policy: str, seed: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gangs over nodes, classes, stops, moves, resizes, and memory from one round to the next."""
    settings.MAX_NODES_PER_JOB = 2
    choose_policy(
        name=policy,
        parameters=CHOICES[policy],
        actor=world.admin(),
        reason="golden test",
        now=database_now() - timedelta(hours=2),
    )
    live = _Live(seed, monkeypatch)
    live.play()
    assert live.ended == JOBS
    made = live.decisions()
    assert _simulated(live) == made
    assert any(not gpus for _, _, gpus in made)
    if policy == "sia":
        assert Attempt.objects.filter(outcome="stopped", stopped_for=F("job")).exists()  # resized
    assert_sound()
