"""A deadline kept on spot nodes, from the form to what was saved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.time_zones import local
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Epoch, Job, Market, NodePrice
from scheduler.services.markets.plans import keep_plans
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from tests.portal.browser.looking import begin_job, look
from tests.scheduler.markets import making
from trainer.protocol import ClaimOrder


@pytest.mark.slow  # its parts are in tests/portal/features/test_market_plans.py and tests/scheduler/markets
def test_a_deadline_is_kept_on_spot_nodes_and_the_market_tab_says_what_that_saved(
    page: Any, settings: Any
) -> None:
    from playwright.sync_api import expect

    settings.SPOT_DECIDER = "greedy"
    choose_policy(name="spot", actor=world.admin(), reason="test", now=database_now())
    east = making.recorded_market()
    spot, steady = making.market_node(east), making.market_node(east, "on_demand")
    begin_job(page)
    page.locator("summary", has_text="deadline, budget").click()
    by = database_now() + timedelta(hours=6)
    page.get_by_label("Deadline").fill(f"{local(by):%Y-%m-%dT%H:%M}")
    page.get_by_label("Deadline").blur()
    plans = page.locator("#plans")
    expect(plans.get_by_role("row").filter(has_text="On spot with the deadline")).to_contain_text("100%")
    look(page, "new-plans")
    plans.get_by_role("button", name="use this plan").last.click()
    expect(page.get_by_label("May use spot nodes")).to_have_value("yes")
    expect(page.get_by_label("Goal")).to_have_value("deadline")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    job = Job.objects.get()
    keep_plans(now=database_now())
    tick()
    order = spot.take_up()
    spot.run(order, step(1))
    page.goto(f"/jobs/{job.pk}/?tab=market")
    expect(page.get_by_text("Runs on spot nodes")).to_be_visible()
    expect(page.get_by_role("heading", name="Planned at submission")).to_be_visible()

    _withdraw(east, spot, steady, order)
    order = steady.take_up()
    steady.run(order, step(6))
    page.reload()
    expect(page.get_by_text("Runs on nodes that stay")).to_be_visible()
    steady.end(order, "succeeded", step(10), result())
    page.reload()
    expect(page.get_by_text("before its deadline")).to_be_visible()
    facts = page.locator("dl.facts")
    expect(facts.locator("div", has_text="Spot nodes that went away")).to_contain_text("1")
    expect(facts.locator("div", has_text="Saved against on demand")).to_contain_text("75%")
    look(page, "job-market-saved")


def _withdraw(market: Market, spot: FakeNode, steady: FakeNode, order: ClaimOrder) -> None:
    """The spot node goes after an hour, just before the deadline, and the next tick moves the job."""
    spot.sync(spot.say(order, "running"), withdraw_in_s=60)
    tick()
    spot.save_checkpoint(order, 5)
    spot.sync(spot.say(order, "ended", outcome="stopped"), withdraw_in_s=59)
    an_hour = timedelta(hours=1)  # it was on the spot node, and the deadline is near by now
    now = database_now()
    NodePrice.objects.update(since=now - 2 * an_hour)
    Allocation.objects.update(allocated_at=now - an_hour, released_at=now)
    Job.objects.update(submitted_at=now - 6 * an_hour, deadline_at=now + timedelta(minutes=1))
    making.sample(market, 0.25, 0, at=now)
    steady.sync()
    Epoch.objects.update(round_at=now - an_hour)
    tick()
