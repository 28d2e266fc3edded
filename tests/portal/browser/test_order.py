"""A person lets one job follow another, and a third begin tomorrow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job
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
    expect(page.get_by_text(f"It comes after {first.pk}.")).to_be_visible()
    look(page, "order-waits")
    page.get_by_role("link", name="pretrain").click()
    order = node.take_up()
    node.run(order, fake_node.step(3))
    node.end(order, "succeeded", fake_node.result())
    assert tick().started == 1
    second = Job.objects.exclude(pk=first.pk).get()
    page.goto(second.get_absolute_url())
    expect(page.get_by_text("must succeed; now succeeded")).to_be_visible()
