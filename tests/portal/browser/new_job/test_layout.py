"""The figure of a new job's places, and where things stand on small and large screens."""

from __future__ import annotations

from typing import Any

from scheduler.models import Node
from tests.harness import world
from tests.portal.browser.looking import SIZES, begin_job, look, tab_to, top


def show_chart(recommendation: Any) -> None:
    """Scroll to the chart: it is drawn when it is near."""
    recommendation.locator(".chart").scroll_into_view_if_needed()
    recommendation.locator(".main-svg").first.wait_for()


def point_at(page: Any, point: Any, told: Any) -> None:
    """Move the pointer to the point until the figure tells about it.

    A figure that follows its window is drawn anew a moment later, which moves its points.
    """
    for _ in range(60):
        point.hover(force=True)
        page.wait_for_timeout(500)
        if told.count():
            return
        page.mouse.move(0, 0)
    raise AssertionError("the figure tells nothing about the point under the pointer")


def test_a_place_is_chosen_from_the_figure_or_its_table(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=4)
    Node.objects.update(price_per_gpu_hour=1.5)
    recommendation = begin_job(page)
    show_chart(recommendation)
    points = recommendation.locator(".scatterlayer .point")
    expect(points.first).to_be_visible()
    look(page, "new-places")
    point_at(page, points.last, recommendation.locator(".hoverlayer .hovertext"))
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
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.route("**/plotly*.js", lambda route: route.abort())
    page.set_viewport_size(SIZES["narrow"])
    recommendation = begin_job(page)
    expect(recommendation.get_by_text("Fastest: ")).to_be_attached()
    assert not [url for url in requests if "plotly" in url]
    recommendation.locator(".chart").scroll_into_view_if_needed()
    recommendation.get_by_text("As a table").click()
    recommendation.get_by_role("button", name="use 2 × cpu").click()
    expect(recommendation.get_by_text("on 2 × cpu")).to_be_visible()
    assert [url for url in requests if "plotly" in url]
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
