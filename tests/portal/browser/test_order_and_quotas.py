"""Order, time, quotas and classes let one job start before another."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import Membership, Team
from portal.clock import database_now
from scheduler.loop.predict.job_changes import find_next
from scheduler.loop.predict.start_forecasts import forecast_starts
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Job, StartForecast
from tests.harness import fake_node, world
from tests.portal.browser.looking import look, sign_in


def test_one_job_follows_another(opened: Any) -> None:
    from playwright.sync_api import expect

    node = world.fake_node(name="gpu-box")
    first = world.job(world.user("mira"), name="pretrain")
    page = opened()
    sign_in(page, "mira")
    page.goto("/jobs/new/")
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    page.get_by_label("Training data", exact=True).select_option(first.training_file_id)
    page.locator("body").click()
    expect(page.locator("#recommended").get_by_text("Peak memory per GPU")).to_be_visible()
    page.get_by_text("More", exact=False).first.click()
    page.get_by_label("After these jobs").select_option(first.pk)
    later = f"{database_now() + timedelta(days=1):%Y-%m-%dT%H:%M}"
    with page.expect_response(lambda answer: "advice" in answer.url and later[:10] in answer.url):
        page.get_by_label("Not before").fill(later)
        page.get_by_label("Not before").blur()
    look(page, "order-new")
    page.get_by_label("Not before").fill("")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="Comes after")).to_be_visible()
    assert tick().started == 1
    page.reload()
    expect(page.get_by_text("Why it waits: It comes after pretrain.")).to_be_visible()
    look(page, "order-waits")
    page.get_by_role("link", name="pretrain").first.click()
    order = node.take_up()
    node.run(order, fake_node.step(3))
    node.end(order, "succeeded", fake_node.result())
    assert tick().started == 1
    second = Job.objects.exclude(pk=first.pk).get()
    page.goto(second.get_absolute_url())
    expect(page.get_by_text("must succeed; now succeeded")).to_be_visible()


@pytest.mark.slow
def test_a_team_gets_what_it_is_guaranteed_and_a_person_uses_a_class(page: Any) -> None:
    from playwright.sync_api import expect

    node = world.fake_node(name="gpu-box", slots=1)
    world.user("root", is_staff=True)
    mira = world.user("mira")
    team = Team.objects.create(name="Speech")
    Membership.objects.create(team=team, user=mira)
    first, second = (world.job(mira, name=name, team=team) for name in ("first", "second"))
    sign_in(page, "root")
    page.goto(f"/teams/{team.pk}/")
    page.get_by_text("Set a quota").click()
    page.get_by_label("GPU model").fill("cpu")
    page.get_by_label("Guaranteed GPUs").fill("1")
    page.get_by_label("May borrow at most").fill("0")
    look(page, "quota-form")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_text("may borrow 0, lends all")).to_be_visible()
    assert (tick().started, tick().started) == (1, 0)
    Allocation.objects.update(allocated_at=database_now() - timedelta(hours=30))
    page.reload()
    expect(page.get_by_text("The team was guaranteed 0.0 GPU-hours and used 30.0")).to_be_visible()
    look(page, "team-receipt")
    page.goto(f"/users/{mira.pk}/")
    page.get_by_label("Highest priority class").select_option("high")
    page.get_by_label("GPUs at a time").fill("8")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_text("at most 8 GPUs at a time", exact=False)).to_be_visible()
    look(page, "user-limits")
    page.goto("/users/limits/")
    look(page, "everybodys-limits")
    page.context.clear_cookies()
    sign_in(page, "mira")
    page.goto(second.get_absolute_url())
    expect(page.get_by_text("Why it waits:")).to_be_visible()
    expect(page.get_by_text("and 1 is guaranteed", exact=False)).to_be_visible()
    page.get_by_role("link", name="Change", exact=True).click()
    page.get_by_label("Priority class").select_option("high")
    look(page, "job-change")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_text("Priority", exact=True)).to_be_visible()
    assert Job.objects.get(pk=second.pk).priority == 1
    look(page, "job-of-a-class")
    page.goto(f"/jobs/new/?from={second.pk}")
    expect(page.get_by_label("Priority class")).to_have_value("high")
    look(page, "new-job-of-a-class")
    page.goto("/settings/")
    look(page, "own-limits")
    assert Job.objects.get(pk=first.pk).state == "assigned"
    see_the_start_move(page, node, world.job(world.user("zoe")), world.job(mira, name="third"))


def see_the_start_move(page: Any, node: fake_node.FakeNode, earlier: Job, waits: Job) -> None:
    """A person sees when a job starts, presses a change, and the start moves."""
    from playwright.sync_api import expect

    node.sync()
    tick()
    forecast_starts(database_now())
    assert start_of(earlier) < start_of(waits)
    page.goto(waits.get_absolute_url())
    expect(page.locator("#starts")).to_contain_text("Starts about")
    expect(page.get_by_text("is being played ahead", exact=False)).to_be_visible()
    node.sync()
    assert find_next(database_now())
    row = page.locator("#changes tr", has_text="In the class high")
    expect(row).to_contain_text("sooner")
    look(page, "job-starts-sooner")
    row.get_by_role("button").click()
    expect(page.get_by_text("Priority", exact=True)).to_be_visible()
    assert Job.objects.get(pk=waits.pk).priority > earlier.priority
    node.sync()
    forecast_starts(database_now())
    assert start_of(waits) < start_of(earlier)


def start_of(job: Job) -> datetime:
    """When it starts, by the newest forecast."""
    return StartForecast.objects.get(job=job, first=False).start_at
