"""Mistakes on the page of a new job are told at their field, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from portal.clock import database_now
from scheduler.models import Job
from tests.harness import world
from tests.portal.browser.looking import begin_job, look, sign_in


def test_a_mistake_is_told_at_its_field_and_nothing_is_lost(page: Any) -> None:
    from playwright.sync_api import expect

    begin_job(page)
    page.get_by_text("validation data, deadline").click()
    page.get_by_label("Budget").fill("-5")
    page.get_by_label("Name", exact=True).fill("my name stays")
    page.get_by_role("button", name="Submit job").click()
    expect(page.locator("#id_budget")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#id_budget")).to_be_focused()
    expect(page.get_by_label("Name", exact=True)).to_have_value("my name stays")
    look(page, "new-mistake")
    assert not Job.objects.exists()
    page.get_by_label("Budget").fill("5")
    expect(page.get_by_text("must be an amount above 0").first).to_be_hidden()
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")


def test_a_value_is_refused_at_its_field_before_the_form_is_sent(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node()
    begin_job(page)
    page.get_by_text("All parameters").click()
    rate = page.get_by_label("Learning rate")
    rate.fill("7")
    rate.blur()
    reported = rate.locator("..").get_by_role("alert")
    expect(reported).to_have_text("Ensure this value is less than or equal to 1.0.")
    expect(rate).to_have_attribute("aria-invalid", "true")
    look(page, "new-refused")
    rate.fill("0.001")
    rate.blur()
    expect(reported).to_be_hidden()
    expect(page.get_by_text("Ignored until corrected")).to_be_hidden()
    expect(rate).not_to_have_attribute("aria-invalid", "true")


def test_a_recommendation_of_other_values_fades_while_one_types(page: Any) -> None:
    """It is asked for once the keys rest, though the field keeps the focus."""
    from playwright.sync_api import expect

    world.fake_node()
    recommendation = begin_job(page)
    recommended = page.locator("#recommended")
    expect(recommended).not_to_have_attribute("data-stale", "")
    page.route("**/jobs/new/advice/**", lambda route: None)  # the answer is on its way
    page.get_by_label("Base model").press_sequentially("x")
    expect(recommended).to_have_attribute("data-stale", "")
    page.unroute("**/jobs/new/advice/**")
    page.get_by_label("Base model").press_sequentially("y")
    expect(page.get_by_label("Base model")).to_be_focused()
    expect(recommended).not_to_have_attribute("data-stale", "")
    expect(recommendation.get_by_text("Peak memory per GPU")).to_be_hidden()


def test_a_file_that_is_too_large_is_not_even_sent(page: Any, settings: Any) -> None:
    from playwright.sync_api import expect

    settings.MAX_UPLOAD_BYTES = 2000
    world.user("ada")
    sign_in(page)
    page.goto("/jobs/new/")
    field = page.locator("#training_file-field")
    for rows, reported in (
        (100, "This file is too large: at most 2.0 KiB"),
        (10, "It was checked and can be used"),
    ):
        content = {"name": "x.jsonl", "mimeType": "", "buffer": world.training_lines(rows)}
        field.locator("#id_upload").set_input_files(content)
        expect(field.get_by_text(reported)).to_be_visible()
        expect(page.get_by_text("does not answer")).to_be_hidden()
    expect(field.get_by_text("This file is too large")).to_be_hidden()


def test_what_the_goal_needs_stands_beside_it(page: Any) -> None:
    from playwright.sync_api import expect

    begin_job(page)
    deadline = page.get_by_label("Deadline")
    expect(deadline).to_be_hidden()
    page.get_by_label("Goal").focus()
    page.keyboard.type("Cheapest by")
    expect(deadline).to_be_visible()
    page.keyboard.press("Tab")
    expect(deadline).to_be_focused()
    expect(page.get_by_role("alert").filter(has_text="is needed for the goal deadline")).to_be_visible()
    expect(deadline).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#recommendation").get_by_text("Balanced until")).to_be_visible()
    look(page, "new-deadline")
    page.get_by_label("Goal").select_option("budget")
    expect(deadline).to_be_hidden()
    page.get_by_label("Goal").select_option("deadline")
    deadline.fill(f"{database_now() + timedelta(days=2):%Y-%m-%dT%H:%M}")
    page.get_by_label("Goal").select_option("budget")
    expect(deadline).to_be_visible()
    deadline.fill("")
    page.get_by_role("button", name="Submit job").click()
    expect(page.locator("#id_budget")).to_be_visible()
    expect(page.get_by_text("is needed for the goal budget").first).to_be_visible()
    page.get_by_label("Budget").fill("3")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    assert (Job.objects.get().goal, Job.objects.get().budget) == ("budget", 3)
