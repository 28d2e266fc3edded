"""An administrator chooses a policy that stops jobs, and sees what it does."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.loop.tick import tick
from tests.harness import world
from tests.harness.fake_node import result, step
from tests.harness.preempting import running
from tests.portal.browser.looking import look, sign_in
from tests.portal.browser.test_people_and_nodes import menu


@pytest.mark.slow
def test_a_policy_that_stops_jobs_lets_two_of_them_change_places(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    node = world.fake_node(name="gpu-box", slots=1)
    long, order = running(node, world.user("mira"))
    short = world.job(world.user("zoe"), name="short", params={"max_steps": 100})
    sign_in(page)
    assert tick().started == 0
    page.goto(short.get_absolute_url())
    expect(page.get_by_text("Why it waits:")).to_be_visible()
    assert (world.state_of(long), world.state_of(short)) == ("running", "queued"), "easy stops nobody"
    choose(page, "las", "short jobs wait for long ones")
    assert tick().started == 0
    page.goto("/queue/")
    expect(page.get_by_role("heading", name="GPUs that are being freed")).to_be_visible()
    look(page, "switch-being-freed")
    page.goto(long.get_absolute_url())
    expect(page.locator("#live")).to_contain_text(
        "Stopped for another job: it saves its work now and then leaves its GPUs to short"
    )
    look(page, "switch-saves")
    node.save_checkpoint(order, 7)
    node.end(order, "stopped")
    assert tick().started == 1
    expect(page.locator("#live")).to_contain_text("It goes on by itself after step 7, its last checkpoint.")
    look(page, "switch-stopped")
    second = node.take_up()
    node.run(second, step(3))
    page.goto(short.get_absolute_url())
    expect(page.locator("#live")).to_contain_text("running")
    look(page, "switch-started")
    node.end(second, "succeeded", result())
    assert tick().started == 1
    third = node.take_up()
    assert third.spec is not None
    assert third.spec.job == long.pk
    assert third.spec.resume is not None
    assert third.spec.resume.step == 7, "its work was kept"
    node.run(third, step(8))
    page.goto(long.get_absolute_url())
    expect(page.locator("#live")).to_contain_text("running")
    page.get_by_role("link", name="Events").click()
    look(page, "switch-goes-on")


def choose(page: Any, name: str, reason: str) -> None:
    from playwright.sync_api import expect

    menu(page, "Scheduling policy")
    page.get_by_role("radio", name=name, exact=True).check()
    page.locator("form:has([type=radio]) [name=reason]").fill(reason)
    look(page, "switch-choose")
    page.get_by_role("button", name="Choose", exact=True).click()
    expect(page.get_by_text(f"{name} is the policy from now on.")).to_be_visible()


PLACES = """tabs => {
    const place = element => element.getBoundingClientRect();
    const {left, right} = place(tabs), chosen = place(tabs.querySelector(".active"));
    const tops = [...tabs.querySelectorAll(".nav-link")].map(link => place(link).top);
    return {left, right, tops, chosen: {left: chosen.left, right: chosen.right}};
}"""


def test_the_tabs_of_a_job_are_one_line_in_which_the_chosen_one_is_seen(any_page: Any) -> None:
    job = world.job(world.user("ada"))
    sign_in(any_page)
    for label in ("Overview", "API call"):
        any_page.goto(job.get_absolute_url())
        tabs = any_page.get_by_role("navigation", name="Parts of this job")
        tabs.get_by_role("link", name=label).click()
        any_page.locator(".nav-underline .active", has_text=label).wait_for()
        seen = tabs.evaluate(PLACES)  # in one moment: fragments that arrive move the page
        assert len(set(seen["tops"])) == 1
        assert seen["left"] <= seen["chosen"]["left"]
        assert seen["chosen"]["right"] <= seen["right"] + 1
