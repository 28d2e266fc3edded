"""Several people before the same portal.

They are strangers and administrators, while nodes come and go.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from portal.accounts.models import Team, User
from portal.accounts.services import create_token
from portal.api.docs import SUBJECTS
from scheduler.loop.tick import tick
from scheduler.models import Gpu, Node
from tests.harness import fake_node, world
from tests.harness.fake_node import FakeNode
from tests.portal.browser.looking import look, sign_in


def test_a_second_user_sees_nothing_of_the_first(opened: Any) -> None:
    from playwright.sync_api import expect

    job = world.placed_job(world.fake_node(), owner=world.user("ada"), name="secret plan")
    world.user("eve")
    page = opened()
    sign_in(page, "eve")
    for path in ("/", "/jobs/", "/nodes/", "/jobs/new/", "/teams/", "/tokens/"):
        page.goto(path)
        expect(page.locator("main")).not_to_contain_text("secret plan")
        expect(page.locator("main")).not_to_contain_text("data.jsonl")
    answer = page.request.get(f"/jobs/{job.pk}/")
    assert answer.status == page.request.get("/jobs/ftjob-none/").status == 404


@pytest.mark.slow
def test_an_administrator_joins_a_second_node_and_drains_the_first_and_its_job_moves(page: Any) -> None:
    from playwright.sync_api import expect

    admin = world.user("ada", is_staff=True)
    first = world.fake_node(name="first-box")
    job = world.job(admin, name="long one")
    tick()
    order = first.take_up()
    first.run(order, fake_node.step(2))
    sign_in(page)
    page.get_by_role("link", name="Nodes").click()
    page.get_by_role("button", name="Add a node").click()
    command = page.locator("#join-command")
    expect(command).to_contain_text("FORETUNE_JOIN_TOKEN=fjoin-")
    look(page, "nodes")
    second = FakeNode.join(
        command.inner_text().split("FORETUNE_JOIN_TOKEN=")[1].split()[0], name="second-box"
    )
    expect(page.get_by_role("link", name="second-box")).to_be_visible()
    page.get_by_role("link", name="first-box").click()
    page.get_by_label("Reason").fill("new disk")
    page.get_by_label("Running jobs").select_option(label="move them elsewhere, with a checkpoint")
    page.get_by_role("button", name="Drain").click()
    expect(page.locator("#node .state")).to_have_text("draining")
    expect(page.get_by_text("new disk").first).to_be_visible()
    tick()
    first.save_checkpoint(order, 2)
    first.end(order, "stopped")
    tick()
    moved = second.take_up()
    assert moved.spec is not None
    assert moved.spec.resume is not None
    second.run(moved, fake_node.step(3))
    second.end(moved, "succeeded", fake_node.result())
    tick()
    expect(page.locator("#node .state")).to_have_text("drained")
    look(page, "node-drained")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_focused()
    reported = "getComputedStyle(document.querySelector('label[for=node_reason]'), '::after').content"
    assert "(required)" in page.evaluate(reported)
    page.goto(f"/jobs/{job.pk}/?tab=attempts")
    expect(page.get_by_text("second-box").first).to_be_visible()
    assert world.state_of(job) == "succeeded"


@pytest.mark.slow
def test_a_busy_node_shows_its_gpus_links_and_jobs(page: Any) -> None:
    from playwright.sync_api import expect

    admin = world.user("ada", is_staff=True)
    node = world.fake_node(name="gpu-box", slots=4, model="NVIDIA-A100-SXM4-80GB", memory_bytes=80 << 30)
    job = world.placed_job(node, owner=admin, name="long one")
    Gpu.objects.update(util=0.7, memory_used_bytes=30 << 30)
    for gpu in Gpu.objects.all():
        gpu.links = {str(other): "NV12" for other in range(4) if other != gpu.index}
        gpu.save()
    Node.objects.update(price_per_gpu_hour=2.5)
    sign_in(page)
    look(page, "home-busy")
    page.goto(f"/nodes/{node.node_id}/")
    expect(page.get_by_text("long one")).to_be_visible()
    expect(page.get_by_text("NV12").first).to_be_visible()
    look(page, "node")
    page.goto(f"/jobs/{job.pk}/?tab=decisions")
    expect(page.get_by_text("of its options by its goal, balanced")).to_be_visible()
    expect(page.get_by_role("strong").get_by_text("chosen")).to_be_visible()
    look(page, "job-decisions")


def test_administrators_run_people_and_read_the_record(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    sign_in(page)
    menu(page, "Users")
    page.get_by_label("Name").last.fill("grace")
    look(page, "users")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#password")).to_be_visible()
    look(page, "password")
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_role("heading", name="grace")).to_be_visible()
    _lock_out_and_let_in(page, User.objects.get(username="grace"))
    menu(page, "Teams")
    page.get_by_label("Name").fill("Linguists")
    page.get_by_role("button", name="Create").click()
    page.get_by_label("Name").first.fill("grace")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("cell", name="grace", exact=True)).to_be_visible()
    look(page, "team")
    menu(page, "Audit")
    expect(page.get_by_text("member added")).to_be_visible()
    look(page, "audit")
    assert Team.objects.get().members.get() == User.objects.get(username="grace")


def _lock_out_and_let_in(page: Any, grace: User) -> None:
    from playwright.sync_api import expect

    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.accept()))
    create_token(owner=grace, name="notebook", now=timezone.now())
    job = world.job(grace)
    page.reload()
    look(page, "user")
    page.get_by_role("button", name="Revoke notebook").click()
    expect(page.get_by_text("No active tokens.")).to_be_visible()
    page.get_by_label("Hand their jobs over to").fill("nobody")
    page.get_by_role("button", name="Deactivate").click()
    expect(page.get_by_text("There is no user with this name.")).to_be_visible()
    look(page, "user-lock-out-refused")
    page.get_by_label("Hand their jobs over to").fill("ada")
    page.get_by_role("button", name="Deactivate").click()
    expect(page.get_by_role("button", name="Reactivate")).to_be_visible()
    look(page, "user-locked-out")
    job.refresh_from_db()
    assert job.owner.username == "ada"
    assert "1 unfinished job will be cancelled, or handed over" in dialogs[-1]
    page.get_by_role("button", name="Reactivate").click()
    expect(page.get_by_role("button", name="Deactivate")).to_be_visible()


def test_a_token_is_made_on_the_page_and_colours_are_chosen(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada")
    sign_in(page)
    menu(page, "API tokens")
    page.get_by_label("Name").fill("notebook")
    look(page, "tokens")
    page.get_by_role("button", name="Create").click()
    token = page.locator("#token").inner_text()
    answer = page.request.get("/api/me/", headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["username"] == "ada"
    page.get_by_role("button", name="ada").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.goto("/tokens/")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    look(page, "tokens-dark")
    page.goto("/password/")
    expect(page.get_by_label("Also revoke my API tokens")).to_be_checked()
    look(page, "own-password")


def menu(page: Any, name: str) -> None:
    """Open the person's menu and go to one of its pages."""
    page.get_by_role("button", name="ada", exact=True).click()
    page.get_by_role("link", name=name, exact=True).click()


def test_the_api_page_works_within_the_content_security_policy(page: Any) -> None:
    from playwright.sync_api import expect

    page.goto("/api/docs/")
    for subject in SUBJECTS:
        expect(page.locator(f".opblock-tag[data-tag={subject}]")).to_be_visible()
    page.locator(".opblock-tag[data-tag=Jobs]").click()
    expect(page.get_by_text("/api/jobs/", exact=True).first).to_be_visible()
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html.dark-mode")).to_be_attached()
    page.get_by_role("link", name="Back to Foretune").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_portal_that_does_not_answer_says_so_and_recovers(opened: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada")
    page = opened(quiet=False)
    sign_in(page)
    page.goto("/jobs/")
    page.route("**/jobs/", lambda route: route.abort())
    expect(page.locator("#stale")).to_be_visible()
    look(page, "jobs-stale")
    page.unroute("**/jobs/")
    expect(page.locator("#stale")).to_be_hidden()
