"""Choosing by hand on the page of a new job: everything else adapts."""

from __future__ import annotations

from typing import Any

from portal.clock import database_now
from scheduler.loop.predict.start_questions import answer_next
from scheduler.models import Job
from tests.harness import world
from tests.portal.browser.looking import begin_job, look, sign_in, tab_to


def duration(recommendation: Any) -> str:
    return str(recommendation.locator("dd").first.inner_text())


def test_a_file_that_is_refused_unread_says_why_beside_its_field(opened: Any, settings: Any) -> None:
    from playwright.sync_api import expect

    page = opened(quiet=False)  # Chromium notes the refusal as an error of its own
    begin_job(page)
    settings.STORAGE_QUOTA_BYTES = 1
    rows = b'{"prompt": "a", "completion": "b"}\n' * 200_000
    content = {"name": "rows.jsonl", "mimeType": "application/json", "buffer": rows}
    page.locator("#id_upload").set_input_files(content)
    expect(page.locator("[data-refused]").first).to_contain_text("storage quota is used up")
    expect(page.locator("#stale")).to_be_hidden()
    assert page.locator("#id_upload").input_value() == ""


def test_one_value_fixed_by_hand_stays_and_the_others_adapt(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    recommendation = begin_job(page)
    before = duration(recommendation)
    page.get_by_text("All parameters").click()
    page.get_by_label("Max steps").fill("5000")
    page.get_by_label("Max steps").blur()
    line = recommendation.get_by_role("row").filter(has_text="Max steps")
    expect(line).to_contain_text("user")
    expect(recommendation.locator("dd").first).not_to_have_text(before)
    recommendation.get_by_role("button", name="pin Learning rate").click()
    fixed = recommendation.get_by_role("row").filter(has_text="Learning rate")
    expect(fixed).to_contain_text("user")
    assert page.get_by_label("Learning rate").input_value() != ""
    recommendation.get_by_role("button", name="unpin Learning rate").click()
    expect(fixed).not_to_contain_text("user")
    expect(page.get_by_label("Max steps")).to_have_value("5000")
    expect(page.locator("#start")).to_have_attribute("hx-trigger", "every 1s")
    while answer_next(now=database_now):
        pass
    expect(page.locator("#start")).to_contain_text("Submitted now: it starts about")
    look(page, "new-fixed")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    assert Job.objects.get().fixed == {"max_steps": 5000}


def test_going_back_and_sending_again_is_the_same_job(page: Any) -> None:
    begin_job(page)
    page.get_by_role("button", name="Submit job").dblclick()
    page.wait_for_url("**/jobs/ftjob-*/")
    made = page.url
    page.go_back(wait_until="load")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    assert page.url == made
    assert Job.objects.count() == 1


def test_who_was_signed_out_signs_in_again_and_loses_nothing(opened: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    page = opened(quiet=False)  # the browser notes the refusals as errors of its own
    begin_job(page)
    page.get_by_label("Name", exact=True).fill("my name stays")
    page.context.clear_cookies(name="sessionid")
    page.get_by_label("Goal").select_option("fastest")
    expect(page.get_by_text("You have been signed out")).to_be_visible()
    expect(page.get_by_label("Password")).to_be_hidden()
    with page.expect_popup() as other:
        page.get_by_role("link", name="Sign in in another tab").click()
    sign_in(other.value)
    other.value.wait_for_url("**/")
    content = {"name": "more.jsonl", "mimeType": "", "buffer": world.training_lines(30)}
    page.locator("#id_upload").set_input_files(content)
    expect(page.get_by_text("more.jsonl: 30 rows")).to_be_visible()
    expect(page.get_by_text("You have been signed out")).to_be_hidden()
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    assert (Job.objects.get().name, Job.objects.get().goal) == ("my name stays", "fastest")


def test_the_keyboard_alone_submits_a_job(page: Any) -> None:
    from playwright.sync_api import expect

    file = world.data_file(world.user("ada"))
    page.goto("/")
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    tab_to(page, "New job")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New job")).to_be_visible()
    tab_to(page, "id_model")
    page.keyboard.type("builtin/tiny-llama")
    tab_to(page, "id_training_file")
    page.keyboard.type(file.filename)
    expect(
        page.locator("#recommendation").get_by_role("heading", name="Parameters and reasons")
    ).to_be_visible()
    tab_to(page, "Submit job")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/ftjob-*/")
    assert Job.objects.get().training_file == file
