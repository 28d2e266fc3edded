"""Choosing by hand on the page of a new job: everything else adapts."""

from __future__ import annotations

from typing import Any

from scheduler.models import Job, Node
from tests.harness import world
from tests.portal.browser.looking import SIZES, look, sign_in


def begin(page: Any) -> Any:
    """The form with its two required values; returns the panel of the recommendation."""
    from playwright.sync_api import expect

    file = world.data_file(world.user("ada"), rows=200)
    sign_in(page)
    page.goto("/jobs/new/")
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    page.get_by_label("Training data").select_option(file.pk)
    advice = page.locator("#recommendation")
    expect(advice.get_by_role("heading", name="Every parameter")).to_be_visible()
    return advice


def duration(advice: Any) -> str:
    return str(advice.locator("dd").first.inner_text())


def test_a_file_that_is_refused_unread_says_why_beside_its_field(opened: Any, settings: Any) -> None:
    from playwright.sync_api import expect

    page = opened(quiet=False)  # Chromium notes the refusal as an error of its own
    begin(page)
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
    advice = begin(page)
    before = duration(advice)
    page.get_by_text("All parameters").click()
    page.get_by_label("Max steps").fill("5000")
    page.get_by_label("Max steps").blur()
    line = advice.get_by_role("row").filter(has_text="Max steps")
    expect(line).to_contain_text("user")
    expect(advice.locator("dd").first).not_to_have_text(before)
    advice.get_by_role("button", name="fix Learning rate").click()
    fixed = advice.get_by_role("row").filter(has_text="Learning rate")
    expect(fixed).to_contain_text("user")
    assert page.get_by_label("Learning rate").input_value() != ""
    advice.get_by_role("button", name="release Learning rate").click()
    expect(fixed).not_to_contain_text("user")
    expect(page.get_by_label("Max steps")).to_have_value("5000")
    look(page, "new-fixed")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    assert Job.objects.get().fixed == {"max_steps": 5000}


def test_a_place_is_chosen_from_the_figure_or_its_table(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=4)
    Node.objects.update(price_per_gpu_hour=1.5)
    advice = begin(page)
    points = advice.locator(".scatterlayer .point")
    expect(points.first).to_be_visible()
    look(page, "new-places")
    points.last.click(force=True)
    expect(advice.get_by_text("You fixed where it runs")).to_be_visible()
    expect(page.get_by_label("GPU model")).to_have_value("cpu")
    advice.get_by_role("button", name="Let it be recommended").click()
    expect(advice.get_by_text("You fixed where it runs")).to_be_hidden()
    advice.get_by_text("As a table").click()
    advice.get_by_role("button", name="use 2 × cpu").click()
    expect(advice.get_by_text("on 2 × cpu")).to_be_visible()


def test_a_figure_covers_nothing_after_the_window_was_turned(page: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=4)
    advice = begin(page)
    for size in ("narrow", "wide"):
        drawn = advice.locator(".main-svg").first
        before = drawn.bounding_box()
        page.set_viewport_size(SIZES[size])
        expect(drawn).not_to_have_attribute("width", str(before["width"]))
        assert top(drawn) + before["height"] <= top(advice.get_by_text("Choose a point"))


def test_the_legend_of_many_gpu_models_hides_no_place_on_a_small_screen(page: Any) -> None:
    from playwright.sync_api import expect

    for model in ("A10G", "A100-SXM4-80GB", "H100-SXM5-80GB", "L40S"):
        world.fake_node(slots=2, model=model, memory_bytes=22 << 30)
    page.set_viewport_size(SIZES["narrow"])
    advice = begin(page)
    legend = advice.locator(".legend")
    expect(legend).to_contain_text("L40S")
    above, points = legend.bounding_box(), advice.locator(".scatterlayer .point")
    assert points.count() == 9
    for point in points.all():
        assert point.bounding_box()["y"] >= above["y"] + above["height"]


def test_the_forecast_is_read_before_the_button_on_a_telephone_and_beside_it_on_a_desk(page: Any) -> None:
    world.fake_node(slots=2)
    page.set_viewport_size(SIZES["narrow"])
    advice = begin(page)
    forecast, reasons = advice.get_by_text("Will it run?"), advice.get_by_text("Every parameter")
    submit, name = page.get_by_role("button", name="Submit job"), page.get_by_label("Name", exact=True)
    assert top(name) < top(forecast) < top(submit) < top(reasons)
    tab_to(page, "Where the memory goes")
    tab_to(page, "Submit job")
    look(page, "new-one-column")
    page.set_viewport_size(SIZES["wide"])
    assert top(forecast) < top(name) < top(submit)
    page.set_viewport_size(SIZES["narrow"])
    submit.click()
    page.wait_for_url("**/jobs/ftjob-*/")


def top(of: Any) -> float:
    return float(of.bounding_box()["y"])


def test_a_mistake_is_told_at_its_field_and_nothing_is_lost(page: Any) -> None:
    from playwright.sync_api import expect

    begin(page)
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
    expect(page.get_by_text("greater than or equal to 0").first).to_be_hidden()
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")


def test_a_file_that_is_too_large_is_not_even_sent(page: Any, settings: Any) -> None:
    from playwright.sync_api import expect

    settings.MAX_UPLOAD_BYTES = 2000
    world.user("ada")
    sign_in(page)
    page.goto("/jobs/new/")
    field = page.locator("#training_file-field")
    for rows, told in (
        (100, "This file is too large: at most 2.0 KiB"),
        (10, "It was checked and can be used"),
    ):
        content = {"name": "x.jsonl", "mimeType": "", "buffer": world.training_lines(rows)}
        field.locator("#id_upload").set_input_files(content)
        expect(field.get_by_text(told)).to_be_visible()
        expect(page.get_by_text("does not answer")).to_be_hidden()
    expect(field.get_by_text("This file is too large")).to_be_hidden()


def test_what_the_goal_needs_stands_beside_it(page: Any) -> None:
    from playwright.sync_api import expect

    begin(page)
    deadline = page.get_by_label("Deadline")
    expect(deadline).to_be_hidden()
    page.get_by_label("Goal").focus()
    page.keyboard.type("Cheapest by")
    expect(deadline).to_be_visible()
    page.keyboard.press("Tab")
    expect(deadline).to_be_focused()
    look(page, "new-deadline")
    page.get_by_label("Goal").select_option("budget")
    expect(deadline).to_be_hidden()
    page.get_by_role("button", name="Submit job").click()
    expect(page.locator("#id_budget")).to_be_visible()
    expect(page.get_by_text("is needed for the goal budget").first).to_be_visible()
    page.get_by_label("Budget").fill("3")
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    assert (Job.objects.get().goal, Job.objects.get().budget) == ("budget", 3)


def test_going_back_and_sending_again_is_the_same_job(page: Any) -> None:
    begin(page)
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
    begin(page)
    page.get_by_label("Name", exact=True).fill("my name stays")
    page.context.clear_cookies(name="sessionid")
    page.get_by_label("Goal").select_option("fastest")
    expect(page.get_by_text("You are signed out")).to_be_visible()
    expect(page.get_by_label("Password")).to_be_hidden()
    with page.expect_popup() as other:
        page.get_by_role("link", name="Sign in in another tab").click()
    sign_in(other.value)
    other.value.wait_for_url("**/")
    content = {"name": "more.jsonl", "mimeType": "", "buffer": world.training_lines(30)}
    page.locator("#id_upload").set_input_files(content)
    expect(page.get_by_text("more.jsonl: 30 rows")).to_be_visible()
    expect(page.get_by_text("You are signed out")).to_be_hidden()
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
    expect(page.locator("#recommendation").get_by_role("heading", name="Every parameter")).to_be_visible()
    tab_to(page, "Submit job")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/ftjob-*/")
    assert Job.objects.get().training_file == file


def tab_to(page: Any, wanted: str) -> None:
    """Press Tab until the focus is on the thing with this id or text; it must be seen there."""
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
