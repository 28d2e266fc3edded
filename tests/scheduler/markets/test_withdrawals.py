"""Spot nodes that go away, with and without a notice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings

from portal.clock import database_now
from portal.events.models import Event
from portal.events.types import EventType
from scheduler.core.market.types import NodeTerms
from scheduler.errors import BadParameters
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Job, Market
from scheduler.services.markets.kinds import set_kind
from scheduler.services.nodes.state import drain_node
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.scheduler.markets import making
from trainer.protocol import NODE_KINDS

pytestmark = pytest.mark.django_db


@pytest.fixture
def spot() -> FakeNode:
    return making.market_node(making.market())


def test_both_sides_know_the_same_kinds() -> None:
    assert set(NODE_KINDS) == set(NodeTerms)


def test_an_agent_says_its_kind_and_market(spot: FakeNode) -> None:
    node = making.row(spot)
    assert (node.kind, node.market and node.market.name, node.state) == ("spot", "east", "ready")


@pytest.mark.one_database
def test_a_market_that_is_unknown_or_does_not_fit_is_noted_and_the_node_is_of_none() -> None:
    making.market("gpus", gpu_model="L4")
    for name, reported in (("nowhere", "not known here"), ("gpus", "offers L4")):
        node = making.row(making.market_node(None, name=name))
        event = Event.objects.get(subject=node.pk, type=EventType.NODE_KIND_CHANGED)
        assert (node.kind, node.market) == ("spot", None)
        assert reported in event.reason


def test_a_notice_drains_the_node_and_gives_its_job_the_time_that_is_left(spot: FakeNode) -> None:
    job = world.placed_job(spot, spot=True)
    order = spot.take_up() if not spot.orders else next(iter(spot.orders.values()))
    spot.run(order, step(1))
    spot.sync(spot.say(order, "running"), withdraw_in_s=100)
    assert making.row(spot).state == "draining"
    tick()
    reply = spot.sync(spot.say(order, "running"), withdraw_in_s=99)
    [reported] = reply.claims
    assert (reported.want, reported.stop_for) == ("stop", "drain")
    assert 90 < reported.grace_s <= 100
    spot.save_checkpoint(order, 1)
    spot.end(order, "stopped")
    job.refresh_from_db()
    assert (job.state, job.infrastructure_used) == ("queued", 0)


@pytest.mark.parametrize("announced", [True, False])
def test_a_lost_spot_node_spends_no_retry(spot: FakeNode, announced: bool) -> None:
    job = world.placed_job(spot, spot=True)
    spot.run(next(iter(spot.orders.values())), step(1))
    if announced:
        spot.sync(withdraw_in_s=5)
        tick()
    world.silence(spot, 1000)
    tick()
    job.refresh_from_db()
    assert (job.state, job.infrastructure_used) == ("queued", 0)
    assert Attempt.objects.get(job=job).outcome == "lost"


@pytest.mark.one_database
def test_another_lost_node_spends_one() -> None:
    node = world.fake_node()
    job = world.placed_job(node)
    world.silence(node, 1000)
    tick()
    job.refresh_from_db()
    assert job.infrastructure_used == 1


def test_a_notice_that_is_taken_back_gives_the_node_work_again(spot: FakeNode) -> None:
    spot.sync(withdraw_in_s=100)
    tick()
    assert making.row(spot).state == "drained"
    spot.sync()
    assert (making.row(spot).state, making.row(spot).withdraw_at) == ("ready", None)


def test_an_administrators_drain_outlasts_a_notice_that_is_taken_back(spot: FakeNode) -> None:
    drain_node(node=making.row(spot), actor=world.admin(), reason="fans", move_jobs=False, now=database_now())
    spot.sync(withdraw_in_s=100)
    spot.sync()
    assert making.row(spot).state == "draining"


@pytest.mark.one_database
def test_a_spot_node_that_comes_and_goes_is_not_blocked(spot: FakeNode) -> None:
    for _ in range(4):
        world.silence(spot, 1000)
        tick()
        assert making.row(spot).state == "lost"
        spot.sync()
        assert making.row(spot).state == "ready"


@pytest.mark.one_database
def test_an_administrator_says_the_kind_of_a_node(spot: FakeNode) -> None:
    node = making.row(world.fake_node())
    kind, east = NodeTerms.ON_DEMAND, Market.objects.get(name="east")
    set_kind(node=node, kind=kind, market=east, actor=world.admin(), now=database_now())
    assert (node.kind, node.market and node.market.name, node.price_per_gpu_hour) == ("on_demand", "east", 1)


@pytest.mark.one_database
def test_a_job_of_large_checkpoints_may_not_use_spot_nodes(settings: LazySettings) -> None:
    settings.CHECKPOINT_UPLOAD_BYTES = 10_000
    world.fake_node()
    with pytest.raises(BadParameters, match="a withdrawal would cost all"):
        world.job(spot=True)
    assert not Job.objects.exists()


def test_spot_nodes_serve_jobs_that_may_use_them_and_no_others(spot: FakeNode) -> None:
    other = world.job()
    assert tick().started == 0
    allowed = world.job(spot=True)
    assert tick().started == 1
    assert [world.state_of(job) for job in (other, allowed)] == ["queued", "assigned"]
    world.fake_node()
    refresh_options()
    tick()
    assert world.state_of(other) == "assigned"


@pytest.mark.one_database
def test_a_spot_node_whose_market_was_deleted_serves_as_others_do(spot: FakeNode) -> None:
    node = making.row(spot)
    assert node.market is not None
    node.market.delete()
    job = world.job(spot=True)
    tick()
    assert world.state_of(job) == "assigned"


@pytest.mark.one_database
def test_a_job_with_a_deadline_may_use_spot_nodes_unless_it_says_no(node: FakeNode) -> None:
    soon = database_now() + timedelta(hours=1)
    assert [
        world.job(deadline_at=at, spot=spot).spot
        for at, spot in (
            (soon, None),
            (soon, False),
            (None, None),
            (None, True),
        )
    ] == [True, False, False, True]
