"""F1, F2, F3: a death between any two transactions.

The process works on a submission, a tick, a sync or an end, and dies once. The points are not
listed: each scenario is played again, five transactions further each time, until it ends alive; on demand
after each one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from django.db.models import F
from django.test import Client

from portal.accounts.models import Scope
from portal.accounts.services import create_token
from portal.clock import database_now
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Epoch, Job, Node, PendingStart
from scheduler.services.jobs.verbs import cancel_job, pause_job
from scheduler.services.nodes.state import drain_node
from scheduler.services.policy import choose_policy
from scheduler.states import TERMINAL
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from tests.harness.invariant_checks import CHECKS, ENDED
from tests.harness.invariants import assert_sound, violations
from tests.scheduler.loop.crashing import dying
from trainer.protocol import ClaimOrder

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
ROUNDS = 12  # of ticks and syncs, within which every job must have ended
OUTCOMES = ("succeeded", "error", "oom", "stopped", "killed", "timeout", "declined", "lost")


@dataclass
class Scene:
    """A scenario in which `act` is cut off by a death.

    The act is repeated by a successor; `nodes` then work on.
    """

    act: Callable[[], Any]
    nodes: list[FakeNode] = field(default_factory=list)


def placed(gpus: int = 1, **values: Any) -> tuple[FakeNode, Job, ClaimOrder]:
    """A node and a job that runs on it."""
    node = world.fake_node(slots=gpus)
    job = world.placed_job(node, **values)
    return node, job, node.take_up()


def submission() -> Scene:
    owner = world.user()
    _, token = create_token(owner=owner, name="t", now=database_now(), scope=Scope.WRITE)
    file = world.data_file(owner)
    body = {"model": "builtin/tiny-llama", "training_file": file.pk}
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one"}

    def submit() -> None:
        answer = Client().post(
            "/api/jobs/", json.dumps(body), content_type="application/json", headers=headers
        )
        assert answer.status_code in (200, 201), answer.content
        assert Job.objects.count() == 1

    return Scene(submit, [world.fake_node()])


def starts() -> Scene:
    nodes = [world.fake_node(slots=slots) for slots in (1, 2)]
    owner = world.user()
    for gpus in (1, 2, 1):
        world.job(owner, params={"number_gpus": gpus})
    return Scene(tick, nodes)


def everything_due() -> Scene:
    """Return one tick with everything due while a job waits.

    A lease, three deadlines and a drain are over.
    """
    silent, _, _ = placed()
    slow = world.fake_node(slots=1)
    late = world.placed_job(slow)
    stubborn, stopped, _ = placed()
    leaving, _, order = placed()
    starting, hung, _ = placed()
    leaving.run(order, step(1))
    cancel_job(job=stopped, actor=stopped.owner, now=database_now())
    about = {"actor": world.admin(), "reason": "r", "move_jobs": True, "now": database_now()}
    drain_node(node=Node.objects.get(pk=leaving.node_id), **about)
    for job in (late, stopped, hung):
        world.age_state(job, 10_000)
    world.job()
    free = world.fake_node()
    world.silence(silent, 100)
    return Scene(tick, [silent, slow, stubborn, leaving, starting, free])


def saying(phase: str, *reports: dict[str, Any], ask: Any = None, **more: Any) -> Callable[[], Scene]:
    """A sync that says so of a running job, which may have been asked to stop before."""

    def scene() -> Scene:
        node, job, order = placed(retries=1)
        node.run(order, step(1))
        if ask:
            ask(job=job, actor=job.owner, now=database_now())
        said = node.say(order, phase, *reports, **more)
        return Scene(lambda: node.sync(said), [node, world.fake_node()])

    return scene


def taken_up() -> Scene:
    node = world.fake_node()
    world.placed_job(node)
    order = next(order for order in node.sync().claims if order.spec is not None)
    said = node.say(order, "running", step(1), step(2))
    return Scene(lambda: node.sync(said), [node])


def back_from_silence() -> Scene:
    node, _, order = placed()
    world.silence(node, 100)
    other = world.fake_node()
    tick()
    said = node.say(order, "ended", outcome="stopped")
    return Scene(lambda: node.sync(said), [node, other])


def saved() -> Scene:
    node, _, order = placed()
    return Scene(lambda: node.save_checkpoint(order, 5), [node])


def preempting() -> tuple[FakeNode, ClaimOrder]:
    """A node whose job has run for long, while another waits that received less."""
    node, _, order = placed(params={"max_steps": 100_000})
    choose_policy(name="las", actor=world.admin(), reason="r", now=database_now())
    node.run(order, step(1))
    world.age_starts(1000)
    world.job(params={"max_steps": 10_000})
    return node, order


def stops_for_another() -> Scene:
    node, _ = preempting()
    return Scene(tick, [node])


def leaves_to_another() -> Scene:
    """The victim saves its work and leaves; then the tick that starts the other."""
    node, order = preempting()
    tick()

    def leave() -> None:
        if Attempt.objects.filter(claims=order.claim, ended_at=None).exists():
            node.save_checkpoint(order, 5)
            node.end(order, "stopped")
        tick()

    return Scene(leave, [node])


def lapses() -> Scene:
    """GPUs are kept for a job that is cancelled."""
    node, _ = preempting()
    tick()
    waiting = PendingStart.objects.get().job
    cancel_job(job=waiting, actor=waiting.owner, now=database_now())
    world.job()
    return Scene(tick, [node])


def resizes() -> Scene:
    """A round of `sia` gives a job the GPU that another one has left."""
    choose_policy(name="sia", parameters={"idle": 20.0}, actor=world.admin(), reason="r", now=database_now())
    node = world.fake_node(slots=2)
    other, job = (world.job(params={"max_steps": 100_000, **more}) for more in ({"number_gpus": 1}, {}))
    tick()
    cancel_job(job=other, actor=other.owner, now=database_now())
    orders = {order.spec.job: order for order in node.sync().claims if order.spec}
    node.end(orders[other.pk], "stopped")
    node.run(orders[job.pk], step(1))
    world.age_starts(1000)

    def decide() -> None:
        Epoch.objects.update(round_at=None)
        tick()
        assert PendingStart.objects.filter(job=job).exists()

    return Scene(decide, [node])


SCENES: dict[str, Callable[[], Scene]] = {
    "submission": submission,
    "tick that starts jobs": starts,
    "tick in which everything is due": everything_due,
    "tick that stops a job for another": stops_for_another,
    "tick that starts the other": leaves_to_another,
    "tick in which a pending start lapses": lapses,
    "tick that resizes a job": resizes,
    "sync of a start": taken_up,
    "sync with progress": saying("running", step(2), {"kind": "log", "body": {"text": "x"}}),
    "sync with a checkpoint": saved,
    "sync of a node that was lost": back_from_silence,
    "end after a cancel": saying("ended", ask=cancel_job, outcome="stopped"),
    "end after a pause": saying("ended", ask=pause_job, outcome="killed"),
    **{f"end as {name}": saying("ended", result(), outcome=name) for name in OUTCOMES},
}


def play(scene: Scene, after: int) -> tuple[bool, Counter[str]]:
    """Play a scene with a death and return whether the death struck.

    The final states of the jobs are returned too; everything is rolled back.
    """
    kept = [(dict(node.seqs), dict(node.orders)) for node in scene.nodes]  # what agents have on disk

    def from_disk() -> None:
        for node, (seqs, orders) in zip(scene.nodes, kept, strict=True):
            node.seqs, node.orders = dict(seqs), dict(orders)

    with transaction.atomic():
        with dying(after) as death:
            scene.act()
        assert_sound()
        from_disk()
        a_while = timedelta(seconds=django_settings.TICK_TAKEOVER_S + 1)
        Epoch.objects.update(since=F("since") - a_while)  # a scheduler that died is replaced after that time
        if death.struck:
            scene.act()
        go_on_to_the_end(scene.nodes)
        states = Counter(Job.objects.values_list("state", flat=True))
        transaction.set_rollback(True)
    from_disk()
    return death.struck, states


def go_on_to_the_end(nodes: list[FakeNode]) -> None:
    for _ in range(ROUNDS):
        Epoch.objects.update(round_at=None)  # of a policy that decides in rounds the next one begins
        tick()
        refresh_options()
        for node in nodes:
            end_what_runs(node)
        if not Job.objects.exclude(state__in={*TERMINAL, "paused"}).exists():
            break
    paused = [one for one in violations("default", CHECKS + ENDED) if not one.detail.startswith("paused")]
    assert not paused, "\n".join(map(str, paused))


def end_what_runs(node: FakeNode) -> None:
    """End all trainings of a node at once, as its agent would.

    Claims that the node does not know are reported as lost.
    """
    for order in node.sync().claims:
        if order.error:
            continue
        known = order.claim in node.orders
        outcome = "stopped" if order.want == "stop" else "succeeded" if known else "lost"
        node.seqs[order.claim] = order.acked_seq
        node.end(order, outcome, *([result()] if outcome == "succeeded" else []))


@pytest.mark.parametrize("stride", [16, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SCENES)
def test_death_between_any_two_transactions_costs_nothing_but_time(name: str, stride: int) -> None:
    scene = SCENES[name]()
    died, expected = play(scene, after=10_000)
    assert not died
    died, point = True, 1
    while died:
        died, states = play(scene, point)
        assert states == expected, f"after {point} transactions"
        point += stride
    assert point > 1 + stride, "nobody died"
