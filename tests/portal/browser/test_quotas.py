"""An administrator guarantees GPUs to a team, and a person uses a class."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from portal.accounts.models import Membership, Team
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Job
from tests.harness import world
from tests.portal.browser.looking import look, sign_in


def test_a_team_gets_what_it_is_guaranteed_and_a_person_uses_a_class(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(name="gpu-box", slots=1)
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
    expect(page.get_by_label("Priority class")).to_have_value("1")
    look(page, "new-job-of-a-class")
    page.goto("/settings/")
    look(page, "own-limits")
    assert Job.objects.get(pk=first.pk).state == "assigned"
