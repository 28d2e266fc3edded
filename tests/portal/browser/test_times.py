"""Exact times by keyboard and by touch, in the browser's own zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scheduler.models import Job
from tests.harness import world
from tests.portal.browser.conftest import Watch
from tests.portal.browser.looking import SIZES, look, sign_in

EXACT = "2026-11-20 07:18:15 UTC+05:30"


def old_job() -> Job:
    job = world.job(world.user("ada"))
    Job.objects.filter(pk=job.pk).update(submitted_at=datetime(2026, 11, 20, 1, 48, 15, tzinfo=UTC))
    return job


def test_a_finger_and_the_keyboard_reach_the_exact_time(chromium_browser: Any, live_server: Any) -> None:
    from playwright.sync_api import expect

    job = old_job()
    context = chromium_browser.new_context(
        base_url=live_server.url, viewport=SIZES["narrow"], has_touch=True, timezone_id="Asia/Kolkata"
    )
    page = context.new_page()
    watch = Watch(page)
    sign_in(page)
    page.goto(f"/jobs/{job.pk}/")
    moment = page.locator("button.moment", has=page.locator('[datetime^="2026-11-20T07:18:15"]')).first
    exact = moment.get_by_text(EXACT)
    expect(moment).to_have_accessible_description(EXACT)
    expect(exact).to_be_hidden()
    moment.tap()
    expect(exact).to_be_visible()
    expect(moment).to_have_attribute("aria-expanded", "true")
    look(page, "job-exact-times")
    moment.focus()
    page.keyboard.press("Enter")
    expect(exact).to_be_hidden()
    page.keyboard.press("Space")
    expect(exact).to_be_visible()
    context.close()
    assert watch.complaints == []


def test_a_time_stays_exact_and_focused_while_its_part_is_fetched_anew(page: Any) -> None:
    from playwright.sync_api import expect

    job = old_job()
    sign_in(page)
    page.goto(f"/jobs/{job.pk}/")
    moment = page.locator("#live button.moment").first
    moment.focus()
    page.keyboard.press("Enter")
    before = moment.locator("time").inner_text()
    expect(moment.locator("time")).not_to_have_text(before)
    expect(moment).to_have_attribute("aria-expanded", "true")
    expect(moment).to_be_focused()


def test_a_person_finds_a_zone_and_pages_tell_times_in_it(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada")
    sign_in(page)
    page.goto("/settings/")
    look(page, "settings")
    page.get_by_label("Show times in").fill("asia/kolkata")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Your settings are saved.")).to_be_visible()
    expect(page.locator("main")).to_contain_text("UTC+05:30")
    page.goto("/jobs/new/")
    page.locator("summary", has_text="More").click()
    expect(page.locator("#id_deadline_at_helptext")).to_have_text("Time in Asia/Kolkata.")
