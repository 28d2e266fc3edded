"""Choosing by hand on the page of a new job: everything else adapts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.time_zones import local
from portal.clock import database_now
from scheduler.loop.predict.start_questions import answer_next
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Epoch, Job, Node, NodePrice
from scheduler.services.markets.plans import keep_plans
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.fake_node import result, step
from tests.portal.browser.looking import SIZES, begin_job, look, sign_in
from tests.scheduler.markets import making


def show_chart(recommendation: Any) -> None:
    """Scroll to the chart: it is drawn when it is near."""
    recommendation.locator(".chart").scroll_into_view_if_needed()
    recommendation.locator(".main-svg").first.wait_for()


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


@pytest.mark.slow  # its parts are in tests/portal/features/test_market_plans.py and tests/scheduler/markets
def test_a_deadline_is_kept_on_spot_nodes_and_the_market_tab_says_what_that_saved(
    page: Any, settings: Any
) -> None:
    from playwright.sync_api import expect

    settings.SPOT_DECIDER = "greedy"
    choose_policy(name="spot", actor=world.admin(), reason="test", now=database_now())
    east = making.recorded_market()
    spot, steady = making.market_node(east), making.market_node(east, "on_demand")
    begin_job(page)
    page.locator("summary", has_text="deadline, budget").click()
    by = database_now() + timedelta(hours=6)
    page.get_by_label("Deadline").fill(f"{local(by):%Y-%m-%dT%H:%M}")
    page.get_by_label("Deadline").blur()
    plans = page.locator("#plans")
    expect(plans.get_by_role("row").filter(has_text="On spot with the deadline")).to_contain_text("100%")
    look(page, "new-plans")
    plans.get_by_role("button", name="use this plan").last.click()
    expect(page.get_by_label("May use spot nodes")).to_have_value("yes")
    expect(page.get_by_label("Goal")).to_have_value("deadline")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    job = Job.objects.get()
    keep_plans(now=database_now())
    tick()
    order = spot.take_up()
    spot.run(order, step(1))
    page.goto(f"/jobs/{job.pk}/?tab=market")
    expect(page.get_by_text("Runs on spot nodes")).to_be_visible()
    expect(page.get_by_role("heading", name="Planned at submission")).to_be_visible()

    spot.sync(spot.say(order, "running"), withdraw_in_s=60)
    tick()
    spot.save_checkpoint(order, 5)
    spot.sync(spot.say(order, "ended", outcome="stopped"), withdraw_in_s=59)
    an_hour = timedelta(hours=1)  # it was on the spot node, and the deadline is near by now
    now = database_now()
    NodePrice.objects.update(since=now - 2 * an_hour)
    Allocation.objects.update(allocated_at=now - an_hour, released_at=now)
    Job.objects.update(submitted_at=now - 6 * an_hour, deadline_at=now + timedelta(minutes=1))
    making.sample(east, 0.25, 0, at=now)
    steady.sync()
    Epoch.objects.update(round_at=now - an_hour)
    tick()
    order = steady.take_up()
    steady.run(order, step(6))
    page.reload()
    expect(page.get_by_text("Runs on nodes that stay")).to_be_visible()
    steady.end(order, "succeeded", step(10), result())
    page.reload()
    expect(page.get_by_text("before its deadline")).to_be_visible()
    facts = page.locator("dl.facts")
    expect(facts.locator("div", has_text="Spot nodes that went away")).to_contain_text("1")
    expect(facts.locator("div", has_text="Saved against on demand")).to_contain_text("75%")
    look(page, "job-market-saved")


def test_a_place_is_chosen_from_the_figure_or_its_table(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=4)
    Node.objects.update(price_per_gpu_hour=1.5)
    recommendation = begin_job(page)
    show_chart(recommendation)
    points = recommendation.locator(".scatterlayer .point")
    expect(points.first).to_be_visible()
    look(page, "new-places")
    points.last.click(force=True)
    expect(recommendation.get_by_text("You chose the GPUs yourself")).to_be_visible()
    expect(page.get_by_label("GPU model")).to_have_value("cpu")
    recommendation.get_by_role("button", name="Use the recommended ones").click()
    expect(recommendation.get_by_text("You chose the GPUs yourself")).to_be_hidden()
    recommendation.get_by_text("As a table").click()
    recommendation.get_by_role("button", name="use 2 × cpu").click()
    expect(recommendation.get_by_text("on 2 × cpu")).to_be_visible()


def test_charts_are_fetched_when_one_is_near_and_the_page_works_without_them(opened: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=4)
    page = opened(quiet=False)  # Chromium notes the request that is cut off as an error of its own
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/plotly*.js", lambda route: route.abort())
    page.set_viewport_size(SIZES["narrow"])
    recommendation = begin_job(page)
    expect(recommendation.get_by_text("Fastest: ")).to_be_attached()
    assert not [url for url in asked if "plotly" in url]
    recommendation.locator(".chart").scroll_into_view_if_needed()
    recommendation.get_by_text("As a table").click()
    recommendation.get_by_role("button", name="use 2 × cpu").click()
    expect(recommendation.get_by_text("on 2 × cpu")).to_be_visible()
    assert [url for url in asked if "plotly" in url]
    page.unroute("**/plotly*.js")
    show_chart(recommendation)


def test_a_figure_covers_nothing_after_the_window_was_turned(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=4)
    recommendation = begin_job(page)
    show_chart(recommendation)
    for size in ("narrow", "wide"):
        drawn = recommendation.locator(".main-svg").first
        before = drawn.bounding_box()
        page.set_viewport_size(SIZES[size])
        expect(drawn).not_to_have_attribute("width", str(before["width"]))
        assert top(drawn) + before["height"] <= top(recommendation.get_by_text("Select a point"))


def test_the_legend_of_many_gpu_models_hides_no_place_on_a_small_screen(page: Any) -> None:
    from playwright.sync_api import expect

    for model in ("A10G", "A100-SXM4-80GB", "H100-SXM5-80GB", "L40S"):
        world.fake_node(slots=2, model=model, memory_bytes=22 << 30)
    page.set_viewport_size(SIZES["narrow"])
    recommendation = begin_job(page)
    show_chart(recommendation)
    legend = recommendation.locator(".legend")
    expect(legend).to_contain_text("L40S")
    above, points = legend.bounding_box(), recommendation.locator(".scatterlayer .point")
    assert points.count() == 9
    for point in points.all():
        assert point.bounding_box()["y"] >= above["y"] + above["height"]


def test_the_prediction_is_read_before_the_button_on_a_telephone_and_beside_it_on_a_desk(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    page.set_viewport_size(SIZES["narrow"])
    recommendation = begin_job(page)
    prediction = recommendation.get_by_text("Chance to run")
    reasons = recommendation.get_by_text("Parameters and reasons")
    submit, name = page.get_by_role("button", name="Submit job"), page.get_by_label("Name", exact=True)
    assert top(name) < top(prediction) < top(submit) < top(reasons)
    tab_to(page, "Where the memory goes")
    tab_to(page, "Submit job")
    recommendation.get_by_text("Where the memory goes").click()
    expect(recommendation.get_by_text("Changes that save memory")).to_be_visible()
    look(page, "new-one-column")
    page.set_viewport_size(SIZES["wide"])
    assert top(prediction) < top(name) < top(submit)
    page.set_viewport_size(SIZES["narrow"])
    submit.click()
    page.wait_for_url("**/jobs/ftjob-*/")


def test_what_a_person_opened_stays_open_in_the_next_prediction(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    recommendation = begin_job(page)
    shown = recommendation.get_by_text("Where the memory goes")
    shown.click()
    shown.evaluate("summary => { summary.dataset.earlier = 'yes' }")
    page.get_by_label("Name", exact=True).fill("Answers")
    page.get_by_label("Name", exact=True).blur()
    expect(page.locator("[data-earlier]")).to_have_count(0)
    expect(recommendation.get_by_text("Changes that save memory")).to_be_visible()
    expect(recommendation.get_by_text("Evidence", exact=True).locator("..")).not_to_have_attribute("open", "")


def top(of: Any) -> float:
    return float(of.bounding_box()["y"])


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


def tab_to(page: Any, wanted: str) -> None:
    """Press Tab until the element with this id or text has the focus.

    The focus must be visible there.
    """
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "({id: document.activeElement.id, text: document.activeElement.textContent.trim(),"
            " outline: getComputedStyle(document.activeElement).outlineStyle,"
            " shadow: getComputedStyle(document.activeElement).boxShadow})"
        )
        if wanted in (focused["id"], focused["text"]):
            assert focused["outline"] != "none" or focused["shadow"] != "none", f"{wanted}: focus is not seen"
            return
    raise AssertionError(f"the keyboard does not reach {wanted}")
