"""Starts that nodes decline.

No job fails for them, and no node is asked again and again (docs/adr/0011).
"""

from __future__ import annotations

from typing import Any

import pytest

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, Node
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
FULL = "disk full: 1,000 bytes are free and 100,000,000 are needed"


def asked(*nodes: FakeNode) -> list[tuple[FakeNode, ClaimOrder]]:
    """The nodes that have a new claim after a tick."""
    tick()
    return [(node, order) for node in nodes for order in node.sync().claims if order.spec is not None]


def decline(*nodes: FakeNode, reason: str = FULL) -> int:
    """Decline whatever comes until nothing comes any more; how often that was."""
    for number in range(20):
        if not (new := asked(*nodes)):
            return number
        for node, order in new:
            node.end(order, "declined", reason=reason)
    raise AssertionError("nodes are asked again and again")


def let_pass(seconds: float) -> None:
    """Also for what nodes have declined."""
    world.age_attempts(seconds)
    for row in Node.objects.all():
        row.declines = [at - seconds for at in row.declines]
        row.save(update_fields=["declines"])


def one_gpu_job() -> Job:
    return world.job(params={"number_gpus": 1})


@pytest.mark.slow
@pytest.mark.one_database
def test_nodes_with_full_disks_fail_no_job_which_goes_on_by_itself_once_there_is_room() -> None:
    nodes = [world.fake_node(name=name) for name in ("left", "right")]
    job = one_gpu_job()
    for _ in range(8):
        assert decline(*nodes) == 2
        job.refresh_from_db()
        assert (job.state, job.wait_code) == (JobState.QUEUED, "declined")
        for said in ("left declined it", "right declined it", "asked again at", "disk full: 1,000 bytes"):
            assert said in job.wait_text
        assert decline(*nodes) == 0
        let_pass(1801)
    assert job.infrastructure_used == 0
    ((node, order),) = asked(*nodes)  # now there is room
    node.run(order, step(1))
    assert world.state_of(job) == JobState.RUNNING


@pytest.mark.one_database
def test_a_job_keeps_away_from_a_node_longer_each_time_until_it_starts_there(node: FakeNode) -> None:
    one_gpu_job()
    for away_s in (60, 600, 1200, 1800, 1800):
        assert decline(node) == 1
        let_pass(away_s - 5)
        assert decline(node) == 0
        let_pass(6)
    ((_, order),) = asked(node)
    node.run(order, step(1))
    node.end(order, "killed", reason="by a signal")
    assert decline(node) == 1
    let_pass(61)
    assert decline(node) == 1


def test_one_job_alone_takes_no_node_out_and_several_do(node: FakeNode, settings: Any) -> None:
    """I20, and a job that no node can start stops nobody else's."""
    settings.NODE_BLOCKED_S = 20.0
    settings.DECLINE_BACKOFF_S = 0.0
    one_gpu_job()
    assert decline(node) == 2
    assert Node.objects.get().state == NodeState.READY
    one_gpu_job()
    assert decline(node) == 1
    blocked = Node.objects.get()
    assert (blocked.state, blocked.block_kind) == (NodeState.BLOCKED, "declines")
    assert FULL in blocked.reason
    assert blocked.events.filter(type="node.declined", reason=FULL).count() == 3


@pytest.mark.one_database
def test_who_keeps_away_from_a_node_holds_nobody_up_there_and_tells_both_reasons() -> None:
    """By the policy nobody passes who wants the same GPUs."""
    busy = world.fake_node(slots=1)
    one_gpu_job()
    asked(busy)
    full = world.fake_node(name="full")
    first = one_gpu_job()
    assert decline(full) == 1
    second = one_gpu_job()
    ((_, order),) = asked(full)
    assert order.spec is not None
    assert order.spec.job == second.pk
    tick()
    first.refresh_from_db()
    assert first.wait_code == "busy"
    assert first.wait_text.startswith(
        "Needs 1 CPU slot; 0 are free. It starts when running jobs release enough."
    )
    assert "full declined it and is asked again at" in first.wait_text


@pytest.mark.one_database
def test_a_gang_keeps_away_from_the_one_of_its_nodes_that_declined(settings: Any) -> None:
    settings.MAX_NODES_PER_JOB = 2
    nodes = [world.fake_node(), world.fake_node()]
    job = world.job(params={"number_nodes": 2})
    (full, order), (fit, second) = asked(*nodes)
    full.end(order, "declined", reason=FULL)
    fit.end(second, "stopped")
    tick()
    job.refresh_from_db()
    assert (job.state, job.wait_code) == (JobState.QUEUED, "declined")
    third = world.fake_node()
    assert {id(node) for node, _ in asked(full, fit, third)} == {id(fit), id(third)}


@pytest.mark.parametrize(("heard", "used"), [(True, 0), (False, 1)])
def test_a_start_that_a_living_node_does_not_take_up_uses_no_try(
    node: FakeNode, heard: bool, used: int
) -> None:
    """Nobody knows the state of a silent node: its lease decides."""
    job = one_gpu_job()
    tick()
    if heard:
        node.sync()
    world.age_state(job, 100)
    tick()
    assert job.attempts.get(fence=1).outcome == "timeout"
    job.refresh_from_db()
    assert job.infrastructure_used == used
    assert (job.wait_code == "declined") == heard


def test_a_node_that_an_administrator_put_right_is_asked_at_once(node: FakeNode) -> None:
    one_gpu_job()
    assert decline(node) == 1
    values: dict[str, Any] = {"actor": world.admin(), "reason": "Room was made", "now": database_now()}
    drain_node(node=Node.objects.get(), move_jobs=False, **values)
    resume_node(node=Node.objects.get(), **values)
    assert decline(node) == 1
