"""An administrator of a large cluster.

The tests find nodes, remove one and choose the scheduling policy.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from benchmarks.portal.crowd import fill
from portal.clock import database_now
from portal.web.analysis.simulations import TIMES, USE
from scheduler.loop.predict.shadow import bring_up_to_date
from scheduler.models import MaintenanceWindow, Node, Simulation
from scheduler.selectors.policy import current_policy
from tests.harness import world
from tests.portal.browser.looking import look, sign_in
from tests.portal.browser.test_people_and_nodes import menu
from tests.scheduler.analysis.past import past


def test_a_node_among_many_is_found_and_removed(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    fill(jobs=0, nodes=60, executions=0, people=0, now=timezone.now())
    Node.objects.filter(name="node-0044").update(state="lost", reason="Silent for more than 90 s.")
    sign_in(page)
    page.get_by_role("link", name="Nodes").click()
    look(page, "nodes-many")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("link", name="node-0020")).to_be_visible()
    page.get_by_role("link", name="lost 1").click()
    page.get_by_label("GPU type").select_option("L40S")
    page.get_by_role("button", name="Filter").click()
    look(page, "nodes-filtered")
    page.get_by_role("link", name="node-0044").click()
    look(page, "node-lost")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove this node").click()
    expect(page.get_by_role("link", name="node-0000")).to_be_visible()
    page.goto("/nodes/?state=lost")
    expect(page.get_by_text("No node matches")).to_be_visible()
    look(page, "nodes-none-match")


@pytest.mark.slow
def test_nodes_are_closed_for_an_evening_and_opened_again(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    fill(jobs=0, nodes=12, executions=0, people=0, now=timezone.now())
    sign_in(page)
    page.get_by_role("link", name="Nodes").click()
    page.get_by_role("link", name="Maintenance windows").click()
    look(page, "windows-none")
    evening = timezone.localtime(timezone.now() + timedelta(days=2)).replace(hour=18, minute=0)
    page.get_by_label("From").fill(f"{evening:%Y-%m-%dT%H:%M}")
    page.get_by_label("Until").fill(f"{evening - timedelta(hours=2):%Y-%m-%dT%H:%M}")
    page.get_by_label("Nodes").select_option(["node-0001", "node-0002"])
    page.get_by_label("Note").fill("New power supply")
    page.get_by_role("button", name="Add").click()
    look(page, "windows-refused")
    assert not MaintenanceWindow.objects.exists()
    page.get_by_label("Until").fill(f"{evening + timedelta(hours=4):%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("The window was added")).to_be_visible()
    page.locator(".chart").first.scroll_into_view_if_needed()
    expect(page.locator(".js-plotly-plot").get_by_text("node-0001").first).to_be_visible()
    look(page, "windows")
    page.get_by_role("button", name="Remove window").click()
    expect(page.get_by_text("All nodes are open to all jobs.")).to_be_visible()


def test_the_policy_is_chosen_with_the_keyboard_alone(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    sign_in(page)
    menu(page, "Scheduling policy")
    look(page, "policy-first")
    page.get_by_role("radio", name="easy (current)").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(page.locator("summary", has_text="All")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.type("short jobs are waiting too long")
    page.keyboard.press("Enter")
    expect(page.get_by_text("fifo is the policy from now on.")).to_be_visible()
    expect(page.get_by_role("cell", name="short jobs are waiting too long")).to_be_visible()
    look(page, "policy")
    assert current_policy() == "fifo"


@pytest.mark.slow
def test_a_policy_proves_itself_in_the_shadow_before_it_is_chosen(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    world.fake_node(slots=1)
    sign_in(page)
    menu(page, "Scheduling policy")
    probation = page.locator("#probation")
    probation.locator("select[name=name]").select_option("sjf")
    probation.locator("[name=reason]").fill("shorter waits?")
    probation.get_by_role("button", name="Put on probation").click()
    expect(probation.get_by_text("shorter waits?")).to_be_visible()
    bring_up_to_date(database_now())
    world.job()
    later = database_now() + timedelta(seconds=90)
    Node.objects.update(last_seen_at=later)
    bring_up_to_date(later)
    page.reload()
    expect(
        probation.get_by_text("sjf would start 1 of these jobs more than a minute earlier")
    ).to_be_visible()
    look(page, "policy-probation")
    assert current_policy() == "easy", "none of its decisions is carried out"
    probation.get_by_role("button", name="End the probation").click()
    expect(probation.get_by_text("Ended probations")).to_be_visible()
    page.get_by_text("All", exact=True).click()
    page.get_by_role("radio", name="sjf", exact=True).check()
    page.locator("form:has([type=radio]) [name=reason]").fill("it started more in the shadow")
    page.get_by_role("button", name="Choose", exact=True).click()
    expect(page.get_by_text("sjf is the policy from now on.")).to_be_visible()
    assert current_policy() == "sjf"


@pytest.mark.slow
def test_policies_are_ticked_and_played_against_each_other(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    past(world.fake_node(), [600, 300, 30], ended=timezone.now())
    sign_in(page)
    menu(page, "Simulations")
    for name in ("sjf", "srtf"):
        page.get_by_role("checkbox", name=name, exact=True).focus()
        page.keyboard.press("Space")
    look(page, "simulations-chosen")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_role("heading", name="Simulation of sjf, srtf")).to_be_visible()
    expect(page.get_by_text("0 of 2 policies simulated")).to_be_visible()
    assert list(Simulation.objects.get().policies) == ["sjf", "srtf"]


@pytest.mark.slow
def test_a_name_in_angle_brackets_is_plain_text_in_a_chart(page: Any) -> None:
    from playwright.sync_api import expect

    world.user("ada", is_staff=True)
    name = "<b>odd</b> & <a href='/audit/'>more</a>"
    node = world.fake_node()
    past(node, [600, 300], ended=timezone.now())
    Node.objects.update(name=name)
    sign_in(page)
    page.goto("/queue/")
    page.locator(".chart").first.scroll_into_view_if_needed()
    expect(page.locator(".js-plotly-plot").get_by_text(name).first).to_be_visible()
    assert page.locator(".js-plotly-plot a[href*=audit]").count() == 0


def test_no_measure_of_a_simulation_is_out_of_sight_on_a_desk(page: Any) -> None:
    world.user("ada", is_staff=True)
    long = {name: 123_456.0 for name, _, kind in (*TIMES, *USE) if kind == "duration"}
    figures = {name: 12_345.678 for name, _, kind in (*TIMES, *USE) if kind != "duration"}
    results = [{"policy": name, **long, **figures} for name in ("fifo", "easy-backfill", "uwfq-whole")]
    made = Simulation.objects.create(
        requested_at=database_now(), until=database_now(), cluster="A100-SXM4-80GB:2x8", state="done",
        policies=["fifo"], knowledge="performance", results=results, progress=1.0, ended_at=database_now(),
    )  # fmt: skip
    sign_in(page)
    page.goto(made.get_absolute_url())
    tables = page.locator(".table-responsive")
    for table in tables.all():
        assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    assert tables.last.get_by_role("columnheader", name="Cost").is_visible()
