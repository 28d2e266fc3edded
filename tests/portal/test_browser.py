"""The pages in a real browser: sign in, submit with two values, watch the job; nothing from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from portal.accounts.models import User
from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.harness import fake_node, world
from tests.harness.tools import chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine"),
    pytest.mark.django_db(transaction=True),
]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update"]  # fmt: skip
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}


@pytest.fixture(scope="module")
def chromium_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Playwright's loop runs in this thread, where Django would refuse to touch the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Watch:
    """What a page must not do: complain in its console, fail, or ask another host."""

    def __init__(self, page: Any) -> None:
        self.complaints: list[str] = []
        self.hosts: set[str | None] = set()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@pytest.fixture(params=sorted(SIZES))
def page(request: pytest.FixtureRequest, chromium_browser: Any, live_server: Any) -> Iterator[Any]:
    scheme = "dark" if request.param == "narrow" else "light"
    context = chromium_browser.new_context(
        base_url=live_server.url, viewport=SIZES[request.param], color_scheme=scheme
    )
    page = context.new_page()
    watch = Watch(page)
    yield page
    context.close()
    assert watch.complaints == []
    assert {host for host in watch.hosts if host} == {"localhost"}


def sign_in(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("x")
    page.get_by_role("button", name="Sign in").click()


def look(page: Any, name: str) -> None:
    """The page fits its window and has no accessibility fault; SCREENSHOTS names a folder for pictures."""
    from axe_playwright_python.sync_playwright import Axe

    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
    assert found.violations_count == 0, found.generate_report()
    if folder := os.environ.get("SCREENSHOTS"):
        path = Path(folder, f"{name}-{page.viewport_size['width']}.png")
        page.screenshot(path=str(path), full_page=True)


def test_two_values_make_a_job_that_is_watched_until_it_ends(page: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    world.user("ada")
    node = world.fake_node(name="gpu-box")
    sign_in(page)
    expect(page.get_by_text("No jobs yet")).to_be_visible()
    look(page, "empty")
    page.get_by_role("link", name="New job").click()
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(world.training_lines(50))
    page.get_by_label("or upload").set_input_files(rows)
    expect(page.get_by_text("50 rows")).to_be_visible()
    expect(page.locator("#advice").get_by_text("Peak memory per GPU")).to_be_visible()
    look(page, "new")
    page.get_by_role("button", name="Submit job").click()
    expect(page.locator("#live .state")).to_have_text("queued")
    tick()
    order = node.take_up()
    node.run(order, {"kind": "start", "body": {"tokens_total": 5000, "steps_total": 10, "startup_s": 2.0}})
    node.run(order, *(fake_node.step(n, loss=3 - n / 5) for n in range(1, 7)))
    node.run(order, {"kind": "log", "body": {"text": "Loading the model\nTraining\n"}})
    expect(page.locator("#live .state")).to_have_text("running")
    expect(page.get_by_text("6 of 10")).to_be_visible()
    expect(page.get_by_text("the lowest was 1.800")).to_be_visible()
    look(page, "running")
    node.upload(order, "adapter/adapter_model.safetensors", b"weights")
    node.end(order, "succeeded", fake_node.result(first_loss=2.8))
    expect(page.locator("#live .state")).to_have_text("succeeded")
    expect(page.get_by_role("link", name="adapter/adapter_model.safetensors")).to_be_visible()
    look(page, "succeeded")
    page.get_by_role("link", name="Jobs", exact=True).first.click()
    look(page, "jobs")


def test_a_running_job_is_cancelled_from_its_page(page: Any) -> None:
    from playwright.sync_api import expect

    person = world.user("ada")
    job = world.placed_job(world.fake_node(), owner=person)
    sign_in(page)
    page.goto(f"/jobs/{job.pk}/")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#live .state")).to_have_text("cancelled")
    assert Job.objects.get().stop_for == "cancel"


def test_an_administrator_adds_and_drains_a_node(page: Any) -> None:
    from playwright.sync_api import expect

    person = world.user("ada", is_staff=True)
    world.placed_job(world.fake_node(name="gpu-box", slots=4, model="NVIDIA-A100-SXM4-80GB"), owner=person)
    sign_in(page)
    page.get_by_role("link", name="Nodes").click()
    page.get_by_role("button", name="Add a node").click()
    expect(page.get_by_text("--join fjoin-")).to_be_visible()
    look(page, "nodes")
    page.get_by_role("button", name="Drain").click()
    expect(page.locator("#rows .state")).to_have_text("draining")


def test_the_api_page_works_within_the_content_security_policy(page: Any) -> None:
    from playwright.sync_api import expect

    User.objects.create_user("ada", password="x")
    page.goto("/api/docs/")
    expect(page.get_by_text("/api/jobs/", exact=True).first).to_be_visible()
