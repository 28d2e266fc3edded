"""Starts of agents (docs/adr/0012).

Late messages change nothing, and two agents at once block the node.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from portal.clock import database_now
from portal.events.models import Event
from scheduler.loop.tick import tick
from scheduler.models import Node
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.nodes.state import resume_node
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts, step
from trainer.protocol import PROTOCOL

pytestmark = pytest.mark.django_db


class Agent:
    """One start of an agent that numbers what it says."""

    def __init__(self, node: FakeNode, boot: str) -> None:
        self.node, self.boot, self.seq = node, boot, 0

    def message(self, *claims: dict[str, Any], **more: Any) -> dict[str, Any]:
        self.seq += 1
        return {"protocol": PROTOCOL, "boot_id": self.boot, "seq": self.seq, "claims": list(claims), **more}

    def send(self, message: dict[str, Any]) -> int:
        return int(self.node.post_sync(message).status_code)

    def sync(self, *claims: dict[str, Any], **more: Any) -> int:
        return self.send(self.message(*claims, **more))


@pytest.fixture
def first(node: FakeNode) -> Agent:
    agent = Agent(node, "first")
    assert agent.sync() == 200
    return agent


@pytest.fixture
def second(node: FakeNode) -> Agent:
    return Agent(node, "second")


def row() -> Node:
    return Node.objects.get()


def let_pass(seconds: float) -> None:
    """As if so much time had passed for what nodes say."""
    passed = timedelta(seconds=seconds)
    Node.objects.update(last_seen_at=F("last_seen_at") - passed)
    Node.objects.filter(until__isnull=False).update(until=F("until") - passed)
    for node in Node.objects.all():
        node.strays = [(at - passed).isoformat() for at in map(_time, node.strays)]
        node.save(update_fields=["strays"])
    world.served_for_long()


def _time(text: str) -> Any:
    return database_now().fromisoformat(text)


def side_by_side(one: Agent, other: Agent, times: int = 4) -> None:
    for _ in range(times):
        one.sync()
        other.sync()


def test_a_late_message_of_an_agent_that_was_restarted_changes_nothing(first: Agent, second: Agent) -> None:
    """I7, I11: neither state nor lease nor facts."""
    late = [first.message(facts=facts(slots=7)), first.message()]
    assert second.sync() == 200
    before = row()
    assert {first.send(message) for message in late} == {409}
    assert second.sync() == 200
    after = row()
    assert (after.state, after.boot_id, after.gpus.count()) == (NodeState.READY, "second", 2)
    assert before.last_seen_at < after.last_seen_at
    world.job()
    assert tick().started == 1


def test_what_is_said_again_by_somebody_on_the_way_counts_for_nothing(first: Agent, second: Agent) -> None:
    """F15"""
    said = first.message()
    assert first.send(said) == 200
    for _ in range(10):
        second.sync()
        assert first.send(said) == 409
    assert (row().state, row().strays) == (NodeState.READY, [])


def test_a_message_that_was_overtaken_does_not_make_a_node_trusted(node: FakeNode) -> None:
    """I5: when it was written nothing ran, but something does."""
    job = world.placed_job(node)
    agent = Agent(node, "first")
    overtaken = agent.message()
    order = next(iter(node.orders.values()))
    assert agent.sync(node.say(order, "running", step(1))) == 200
    cancel_job(job=job, actor=job.owner, now=database_now())
    world.age_state(job, 1000)
    tick()
    assert row().state == NodeState.BLOCKED
    assert agent.send(overtaken) == 200
    assert row().state == NodeState.BLOCKED
    agent.sync()
    assert row().state == NodeState.READY


def test_two_agents_side_by_side_block_the_node_until_one_of_them_is_stopped(
    first: Agent, second: Agent
) -> None:
    side_by_side(second, first, times=30)
    blocked = row()
    assert (blocked.state, blocked.block_kind) == (NodeState.BLOCKED, "identity")
    assert "Two agents use this node's token" in blocked.reason
    assert Event.objects.filter(type="node.blocked").count() == 1
    for _ in range(4):
        let_pass(60)
        side_by_side(second, first, times=1)
        tick()
        assert row().state == NodeState.BLOCKED
    let_pass(60)
    second.sync()
    let_pass(40)
    second.sync()
    tick()
    assert (row().state, row().boot_id) == (NodeState.READY, "second")


def test_the_earlier_one_may_be_the_one_that_stays(first: Agent, second: Agent) -> None:
    side_by_side(second, first)
    for _ in range(4):
        let_pass(25)
        assert first.sync() == 409
        tick()
    assert row().state == NodeState.LOST
    assert first.sync() == 409
    let_pass(31)
    assert first.sync() == 200
    assert (row().state, row().boot_id) == (NodeState.READY, "first")
    assert second.sync() == 409


def test_late_messages_do_not_bring_a_lost_node_back(first: Agent, second: Agent) -> None:
    late = [first.message() for _ in range(10)]
    second.sync()
    let_pass(100)
    tick()
    assert {first.send(message) for message in late} == {409}
    assert row().state == NodeState.LOST
    assert second.sync() == 200
    assert row().state == NodeState.READY


def test_agents_that_do_not_number_what_they_say_are_told_apart_as_well(node: FakeNode) -> None:
    def sync(boot: str) -> int:
        return int(node.post_sync({"protocol": PROTOCOL, "boot_id": boot, "claims": []}).status_code)

    assert [sync(boot) for boot in "abaaab"] == [200, 200, 409, 409, 409, 200]
    assert row().state == NodeState.READY
    assert [sync(boot) for boot in "abab"] == [409, 200, 409, 200]
    assert row().state == NodeState.BLOCKED
    resume_node(node=row(), actor=world.admin(), reason="One is stopped", now=database_now())
    assert [sync(boot) for boot in "bb"] == [200, 200]
    assert row().state == NodeState.READY


def test_a_node_gets_no_work_before_it_is_heard_of(client: Any) -> None:
    """Its agent may never have got the answer to its enrolment."""
    node = world.fake_node(heard=False)
    job = world.job()
    assert tick().started == 0
    assert (row().state, world.state_of(job)) == (NodeState.LOST, JobState.QUEUED)
    node.sync()
    assert row().state == NodeState.READY
    assert tick().started == 1
    assert list(row().events.order_by("id").values_list("type", flat=True)) == [
        "node.enrolled",
        "node.joined",
    ]
