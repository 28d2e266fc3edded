"""The policy `spot` in the live loop: on spot nodes while they last, on others in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, Market, MarketDecision, MarketOrder
from scheduler.selectors.cluster.inventory import inventory
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.fake_node import step
from tests.scheduler.markets import making
from tests.scheduler.markets.making import next_round

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _spot(settings: Any) -> None:
    settings.SPOT_DECIDER = "greedy"
    choose_policy(name="spot", actor=world.admin(), reason="test", now=database_now())


def market(**terms: Any) -> Market:
    made = making.market(changeover_s=1.0, **terms)
    making.sample(made, 0.25, 2)
    return made


def job(hours: float = 10.0) -> Job:
    return world.job(deadline_at=database_now() + timedelta(hours=hours))


def node_of(of: Job) -> str:
    return of.attempts.latest("fence").claims.get().node.name


def test_a_job_runs_on_spot_nodes_and_goes_on_elsewhere_in_time() -> None:
    east = market()
    spot, steady = making.market_node(east), making.market_node(east, "on_demand")
    made = job()
    tick()
    assert node_of(made) == making.row(spot).name
    decision = MarketDecision.objects.get(job=made)
    assert (decision.spot, decision.on_demand, decision.decider) == (1, 0, "greedy")
    spot.sync()
    order = next(iter(spot.orders.values()))
    spot.run(order, step(1))
    next_round()
    assert making.row(spot).state == "ready"
    spot.sync(spot.say(order, "running"), withdraw_in_s=60)
    tick()
    spot.sync(spot.say(order, "ended", outcome="stopped"), withdraw_in_s=59)
    making.sample(east, 0.25, 0, at=database_now())
    steady.sync()
    next_round()
    made.refresh_from_db()
    assert (made.state, made.wait_code, made.infrastructure_used) == ("queued", "market", 0)
    later = database_now()  # as if the time to the deadline had passed
    Job.objects.filter(pk=made.pk).update(
        submitted_at=later - timedelta(hours=10), deadline_at=later + timedelta(minutes=1)
    )
    next_round()
    assert node_of(made) == making.row(steady).name


def test_a_market_that_can_be_asked_is_asked_for_the_nodes_of_a_job(settings: Any) -> None:
    settings.PROVISIONERS = {"cloud": ["true"]}
    east = market(provisioner="cloud", max_nodes=2)
    idle = making.market_node(east, "on_demand")
    made = job()
    next_round()
    assert world.state_of(made) == "queued"
    assert MarketOrder.objects.get(market=east, kind="spot").nodes == 1
    assert making.row(idle).give_back


def test_a_market_offers_the_memory_that_its_gpus_leave_to_programs(settings: Any) -> None:
    settings.PROVISIONERS = {"cloud": ["true"]}
    market(gpu_model="T4", provisioner="cloud")
    assert [pool.memory_bytes for pool in inventory(spot=True).pools] == [14_912 << 20]


@pytest.mark.one_database
def test_jobs_without_a_deadline_are_served_as_by_easy() -> None:
    market()
    world.fake_node()
    made = world.job()
    tick()
    assert world.state_of(made) == "assigned"
