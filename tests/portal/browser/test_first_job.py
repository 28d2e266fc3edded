"""From the first sign-in to a downloaded artifact, with two values."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.harness import fake_node, world
from tests.portal.browser.looking import look, sign_in

WEIGHTS = "adapter/adapter_model.safetensors"


def test_two_values_make_a_job_that_is_watched_until_its_artifact_is_here(
    any_page: Any, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    page = any_page

    world.user("ada")
    node = world.fake_node(name="gpu-box")
    sign_in(page)
    expect(page.get_by_text("Three steps")).to_be_visible()
    look(page, "home-first")
    page.get_by_role("link", name="Submit your first job").click()
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(world.training_lines(50))
    page.get_by_label("or upload").first.set_input_files(rows)
    expect(page.get_by_text("50 rows, Prompt")).to_be_visible()
    expect(page.locator("#recommended").get_by_text("Peak memory per GPU")).to_be_visible()
    page.get_by_text("Lengths and first rows").click()
    expect(page.get_by_text("What is 1 + 1?")).to_be_visible()
    expect(page.locator(".file-report .main-svg").first).to_be_visible()
    look(page, "new")
    page.get_by_role("button", name="Submit job").click()
    expect(page.locator("#live .state")).to_have_text("queued")
    tick()
    order = node.take_up()
    start = {"row_tokens": 5000, "steps_total": 10, "startup_s": 2.0}
    node.run(order, {"kind": "start", "body": start})
    rates = {n: {"learning_rate": 2e-4 * (1 - n / 10), "gradient_norm": 4 - n / 2} for n in range(1, 7)}
    node.run(order, *(fake_node.step(n, loss=3 - n / 5, **rates[n]) for n in range(1, 7)))
    expect(page.locator("#live .state")).to_have_text("running")
    expect(page.get_by_text("6 of 10")).to_be_visible()
    expect(page.get_by_text("the lowest was 1.800")).to_be_visible()
    expect(page.get_by_text("Gradient norm went from 3.5 at step 1 to 1 at step 6")).to_be_visible()
    expect(page.get_by_text("Learning rate went from 0.00018 at step 1 to 8e-05 at step 6")).to_be_visible()
    expect(page.get_by_text("New prediction").filter(visible=True).first).to_be_visible()
    actual = page.get_by_role("columnheader", name="Actual")
    actual.scroll_into_view_if_needed()
    expect(actual).to_be_in_viewport(ratio=1)
    look(page, "job-running")
    node.upload(order, WEIGHTS, b"weights")
    node.end(order, "succeeded", fake_node.result(first_loss=2.8))
    expect(page.locator("#live .state")).to_have_text("succeeded")
    with page.expect_download() as download:
        page.get_by_role("link", name=WEIGHTS).click()
    assert Path(download.value.path()).read_bytes() == b"weights"
    look(page, "job-succeeded")
    page.get_by_role("link", name="Jobs", exact=True).first.click()
    look(page, "jobs")


def test_every_part_of_a_job_can_be_looked_at(page: Any) -> None:
    from playwright.sync_api import expect

    person, node = world.user("ada"), world.fake_node(name="gpu-box")
    job = world.job(person, name="summaries", params={"lora_r": 8})
    tick()
    order = node.take_up()
    node.run(order, fake_node.step(3), {"kind": "log", "body": {"text": "Loading\nTraining begins\n"}})
    node.save_checkpoint(order, 4)
    sign_in(page)
    page.goto(f"/jobs/{job.pk}/")
    parts = page.get_by_role("navigation", name="Parts of this job")
    expected = {
        "Log": "Training begins",
        "Parameters": "Evidence",
        "Attempts": "in the portal",
        "Events": "Checkpoint at step 4",
        "API call": "FORETUNE_TOKEN",
    }
    for name, text in expected.items():
        parts.get_by_role("link", name=name).click()
        expect(page.get_by_text(text).first).to_be_visible()
        look(page, f"job-{name.lower().replace(' ', '-')}")
    parts.get_by_role("link", name="Log").click()
    page.get_by_role("searchbox").fill("training")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("1 line with")).to_be_visible()


def test_a_job_that_will_be_late_says_so_and_what_can_be_done(page: Any) -> None:
    from playwright.sync_api import expect

    person, node = world.user("ada"), world.fake_node(name="gpu-box")
    deadline_at = database_now() + timedelta(seconds=900)
    job = world.job(person, name="summaries", deadline_at=deadline_at)
    tick()
    order = node.take_up()
    node.run(order, {"kind": "start", "body": {"row_tokens": 5000, "steps_total": 200}})
    slow = [fake_node.step(number) for number in range(1, 9)]
    node.run(order, *({**report, "body": {**report["body"], "step_s": 30.0}} for report in slow))
    sign_in(page)
    page.goto(f"/jobs/{job.pk}/")
    expect(page.get_by_role("status").filter(has_text="after its deadline")).to_be_visible()
    expect(page.locator("#live dd").get_by_text("about")).to_be_visible()
    page.goto(f"/jobs/{job.pk}/?tab=events")
    expect(page.get_by_text("Pause and resume it").last).to_be_visible()


def test_a_running_job_is_paused_resumed_and_cancelled(page: Any) -> None:
    from playwright.sync_api import expect

    person, node = world.user("ada"), world.fake_node()
    job = world.job(person)
    tick()
    order = node.take_up()
    node.run(order, fake_node.step(2))
    sign_in(page)
    page.goto(f"/jobs/{job.pk}/")
    shown = page.locator("#live .state")
    expect(shown).to_have_text("running")
    page.get_by_role("button", name="Pause").click()
    expect(shown).to_have_text("pausing")
    node.save_checkpoint(order, 2)
    node.end(order, "stopped")
    expect(shown).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(shown).to_have_text("queued")
    tick()
    again = node.take_up()
    assert again.spec is not None
    assert again.spec.resume is not None
    assert again.spec.resume.step == 2
    node.run(again, fake_node.step(3))
    expect(shown).to_have_text("running")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Cancel").click()
    expect(shown).to_have_text("running")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    expect(shown).to_have_text("cancelled")
    node.end(again, "stopped")
    assert world.state_of(job) == "cancelled"
    assert Job.objects.count() == 1
