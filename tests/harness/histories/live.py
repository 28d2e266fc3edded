"""A history of jobs that the live loop plays with fake nodes.

The database's clock is replaced; trainings take as long as their options promise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.db.models import Q

from knowledge.core.domain.types import Option
from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.errors import IllegalTransition
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Claim, DatasetFile, Job, JobArray
from scheduler.selectors.cluster.stop_costs import restart_s
from scheduler.services.jobs.dependencies import After
from scheduler.services.quotas import LimitValues, QuotaValues, set_limit, set_quotas
from scheduler.states import JobState
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.harness.histories.planned_jobs import (
    SLOTS,
    PlannedJob,
    closely_planned_job,
    planned_job,
    under_rules,
)
from trainer.protocol import ClaimOrder, Phase

NODES = 3
IDLE_SYNC_S = 40  # of nodes that hold nothing; by NODE_SUSPECT_S of silence they would get no starts
# A policy of each mechanism that stops jobs or plans ahead; others are played on demand.
MECHANISMS = ("easy", "tiresias", "sia", "topology", "spot")
# (seconds, job, its GPUs as (node, index)); no GPUs: it was stopped for others.
Decision = tuple[float, int, tuple[tuple[int, int], ...]]


class PlannedAct(NamedTuple):
    """An act on a job, by its number, at a second.

    Nothing happens if the job has ended by then.
    """

    at: int
    job: int
    verb: Callable[..., Job]


@dataclass(frozen=True, slots=True)
class Size:
    """Of a history: jobs arrive within `arrivals_s`.

    rules: jobs belong to teams with quotas, some come after others, begin later or share an array.
    acts: of an administrator. slots: of each node. sites: nodes say where they sit, and jobs of several ask
    for one NUMA node.
    """

    jobs: int
    arrivals_s: int
    step_s: int
    steps: int
    rules: bool = False
    acts: tuple[PlannedAct, ...] = ()
    slots: int = SLOTS
    sites: bool = False


PLAIN = Size(jobs=6, arrivals_s=100, step_s=20, steps=100)
GOLDEN = Size(jobs=10, arrivals_s=100, step_s=20, steps=100, rules=True)
CLOSE = Size(jobs=12, arrivals_s=100, step_s=20, steps=200, slots=4, sites=True)


@dataclass
class Training:
    """A job on its nodes; its work goes on as its option promised."""

    option: Option
    claims: list[tuple[FakeNode, ClaimOrder]]
    begins: float
    before: float  # share of the job that was done before

    def done(self, at: float) -> float:
        return min(1.0, self.before + max(0.0, at - self.begins) / self.option.duration_s.value)

    def reports(self, at: float | None, *, begins: bool) -> list[dict[str, Any]]:
        counted = [{"kind": "start", "body": {"steps_total": self.option.steps}}] if begins else []
        return counted if at is None else [*counted, self.report(at)]

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
        default_factory=lambda: database_now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    )
    jobs: list[Job] = field(default_factory=list)
    running: dict[str, Training] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # claims
    ended: int = 0
    heard: dict[str, float] = field(default_factory=dict)  # node: when it last synced

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.nodes = sorted((self._node() for _ in range(NODES)), key=lambda n: n.node_id)
        self.owners: list[User] = [world.admin(), world.admin()]  # who may give every class
        size = self.size
        arrivals = sorted(rng.randrange(0, size.arrivals_s, size.step_s) for _ in range(size.jobs))
        planned = closely_planned_job if size.sites else planned_job
        self.plan = [planned(rng, at) for at in arrivals]
        self.teams: list[Team] = []
        if size.rules:
            self.plan = [under_rules(rng, number, job) for number, job in enumerate(self.plan)]
            self._set_rules()

    def _node(self) -> FakeNode:
        node = world.fake_node(slots=self.size.slots)
        if self.size.sites:
            world.declare_sites(node, self.size.slots)
        return node

    def _set_rules(self) -> None:
        """Two teams with quotas, a limit of everybody, and an array of which one job runs at a time."""
        self.teams = [Team.objects.create(name=f"team {number}") for number in range(2)]
        for team in self.teams:
            Membership.objects.bulk_create(Membership(team=team, user=owner) for owner in self.owners)
            quota = QuotaValues(gpu_model="cpu", guaranteed=2, borrow_limit=2)
            set_quotas(team=team, quotas=[quota], actor=self.owners[0], now=self.origin)
        limit = LimitValues(running_jobs=4)
        set_limit(user=None, values=limit, actor=self.owners[0], now=self.origin)
        self.array = JobArray.objects.create(owner=self.owners[0], limit=1, submitted_at=self.origin)

    def play(self) -> None:
        files = [world.data_file(owner) for owner in self.owners]
        for at in range(0, self.size.steps * self.size.step_s, self.size.step_s):
            self.clock.setattr("portal.clock.read", lambda at=at: self.origin + timedelta(seconds=at))
            self._go_on(at)
            if self.ended == self.size.jobs:
                return
            for job in self.plan:
                if job.at == at:
                    self.jobs.append(self._submit(job, files[job.owner]))
            self._act(at)
            tick()
            if self._obey(at):
                tick()
                self._obey(at)

    def _act(self, at: int) -> None:
        for act in self.size.acts:
            if act.at == at:
                with suppress(IllegalTransition):
                    act.verb(job=self.jobs[act.job], actor=self.owners[0], now=database_now())

    def _submit(self, planned: PlannedJob, file: DatasetFile) -> Job:
        def at(seconds: int | None) -> datetime | None:
            return None if seconds is None else self.origin + timedelta(seconds=seconds)

        job = world.job(
            self.owners[planned.owner],
            training_file=file,
            params=planned.params,
            priority=planned.priority,
            deadline_at=at(planned.due),
            team=None if planned.team is None else self.teams[planned.team],
            begin_at=at(planned.begins),
            topology=planned.topology,
            topology_level=planned.level,
            after=[] if planned.after is None else [After(self.jobs[planned.after])],
        )
        if planned.in_array:
            job.array = self.array
            job.save(update_fields=["array"])
        return job

    def _go_on(self, at: float) -> None:
        """Every node reports its trainings, and the end of those that are done."""
        for pk, training in list(self.running.items()):
            if training.done(at) >= 1:
                del self.running[pk]
                self.ended += 1
                for node, order in training.claims:
                    node.upload(order, "output/adapter.bin", b"learnt")
                    node.sync(
                        node.say(order, "ended", training.report(at), outcome="succeeded"), *self._held(node)
                    )
        for node in self.nodes:
            held = self._held(node, at)
            if held or at - self.heard.get(node.node_id, -math.inf) >= IDLE_SYNC_S:
                node.sync(*held)
                self.heard[node.node_id] = at

    def _obey(self, at: float) -> bool:
        """Trainings begin or, with a checkpoint, stop as told; returns whether any stopped."""
        told, wanted = self._told(), set()
        for node in told:
            wanted |= {order.claim for order in node.sync(*self._held(node)).claims if order.want == "stop"}
        self._begin(at, told)
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

    def _told(self) -> list[FakeNode]:
        """The nodes to which a sync tells something new."""
        to_stop = Q(attempt__job__state=JobState.STOPPING) | ~Q(attempt__pending_outcome="")
        open_claims = Claim.objects.filter(attempt__ended_at=None, outcome="")
        told = {*open_claims.filter(Q(phase=Phase.ASSIGNED) | to_stop).values_list("node", flat=True)}
        return [node for node in self.nodes if node.node_id in told]

    def _begin(self, at: float, told: Sequence[FakeNode]) -> None:
        new: dict[str, list[tuple[FakeNode, ClaimOrder]]] = {}
        for node in told:
            for claim in sorted(node.orders.keys() - self.taken):
                self.taken.add(claim)
                spec = node.orders[claim].spec
                assert spec is not None
                new.setdefault(spec.job, []).append((node, node.orders[claim]))
        for pk, claims in new.items():
            attempts = list(Attempt.objects.filter(job=pk).order_by("fence"))
            restart = restart_s(attempts) if len(attempts) > 1 else 0.0
            self.running[pk] = Training(attempts[-1].promised, claims, at + restart, self.done.get(pk, 0.0))
        for node in told if new else ():
            node.sync(*self._held(node, begun=new))

    def _held(
        self, of: FakeNode, at: float | None = None, begun: Container[str] = ()
    ) -> list[dict[str, Any]]:
        """Every sync names all claims that a node has.

        begun: the jobs whose trainings begin, and count their steps.
        """
        return [
            of.say(order, "running", *training.reports(at, begins=pk in begun))
            for pk, training in self.running.items()
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
