"""When a job goes on demand at the latest: by its measured pace, and the same on every page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.selectors.markets.job_market import job_market, latest_switch
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.fake_node import step
from tests.scheduler.markets import making
from tests.scheduler.markets.making import next_round

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
STEPS, STEP_S = 8, 60.0


def test_a_job_that_is_slower_than_promised_has_to_switch_earlier(settings: Any) -> None:
    settings.SPOT_DECIDER = "greedy"
    choose_policy(name="spot", actor=world.admin(), reason="test", now=database_now())
    east = making.market(changeover_s=1.0)
    making.sample(east, 0.25, 2)
    node, deadline = making.market_node(east), database_now() + timedelta(hours=10)
    job = world.job(deadline_at=deadline)
    tick()
    by_promise = latest_switch(job)
    assert by_promise
    assert deadline - by_promise < timedelta(minutes=2)
    node.sync()
    order = next(iter(node.orders.values()))
    for number in (1, 2, 3):
        node.run(order, step(number, total_steps=STEPS, step_s=STEP_S))
    next_round()
    node.sync(node.say(order, "running"), withdraw_in_s=60)
    tick()
    node.sync(node.say(order, "ended", outcome="stopped"), withdraw_in_s=59)
    making.sample(east, 0.25, 0, at=database_now())
    next_round()
    job.refresh_from_db()
    waiting = latest_switch(job)
    assert waiting
    left_s = STEPS * STEP_S  # it starts again: no checkpoint was stored
    assert timedelta(seconds=0.8 * left_s) < deadline - waiting < timedelta(seconds=1.5 * left_s)
    assert f"at {waiting:%Y-%m-%d %H:%M} UTC at the latest" in job.wait_text
    assert f"at {waiting:%Y-%m-%dT%H:%M}+00:00 at the latest" in job_market(job, "spot", database_now()).next
