"""Several jobs of one form, and jobs that come after one or all of them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.loop.tick import tick
from scheduler.models import Job, JobArray
from tests.harness import fake_node, world
from tests.portal.browser.looking import look, sign_in


@pytest.mark.slow
def test_a_job_follows_one_of_an_array_and_the_array_is_cancelled(page: Any) -> None:
    from playwright.sync_api import expect

    node = world.fake_node(name="gpu-box", slots=2)
    data = world.data_file(world.user("mira"))
    sign_in(page, "mira")
    begin(page, "warm-up", data.pk)
    submit_array(page)
    expect(page.locator("#array")).to_contain_text("3 queued; at most 1 at a time")
    array = JobArray.objects.get()
    first, second, third = array.jobs.order_by("submitted_at")
    assert [job.params["learning_rate"] for job in (first, second, third)] == [1e-4, 2e-4, 5e-4]
    after_first = submit_after(page, "fine-tune", first)
    after_third = submit_after(page, "compare", third)
    after_all = submit_after(page, "publish", array)
    expect(page.get_by_text("All jobs of")).to_be_visible()
    look(page, "array-follower-of-all")
    assert tick().started == 1, "there is room for two, and one of the array at a time"
    page.goto(array.get_absolute_url())
    expect(page.locator("#rows")).to_contain_text("At most 1 of the jobs of")
    look(page, "array-one-runs")
    page.goto(after_first)
    expect(page.get_by_text("Why it waits: It comes after warm-up 1.")).to_be_visible()
    look(page, "array-follower-waits")
    order = node.take_up()
    node.run(order, fake_node.step(3))
    node.end(order, "succeeded", fake_node.result())
    assert tick().started == 2
    orders = {claim.spec.job: claim for claim in node.sync().claims if claim.spec}
    node.sync(*(node.say(one, "running", fake_node.step(1)) for one in orders.values()))
    expect(page.locator("#live")).to_contain_text("running")
    expect(page.get_by_text("Why it waits:")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("must succeed; now succeeded")).to_be_visible()
    cancel_all(page, array)
    node.end(orders[second.pk], "stopped")
    tick()
    page.reload()
    expect(page.locator("#array")).to_contain_text("1 succeeded, 2 cancelled")
    expect(page.get_by_role("button", name="Cancel all")).to_have_count(0)
    look(page, "array-cancelled")
    page.goto(after_third)
    expect(page.locator("#live")).to_contain_text(
        "Cancelled: It was to start after warm-up 3 had succeeded, which has been cancelled."
    )
    look(page, "array-follower-cancelled")
    see_that_a_follower_of_all_is_cancelled(page, after_all, array)
    assert world.state_of(Job.objects.get(name="fine-tune")) == "running", "the first one had succeeded"


def see_that_a_follower_of_all_is_cancelled(page: Any, address: str, array: JobArray) -> None:
    """It names the array, whose jobs are a click away."""
    from playwright.sync_api import expect

    page.goto(address)
    because = f"after all jobs of {array.pk} had succeeded, of which warm-up"
    expect(page.locator("#live")).to_contain_text(because)
    page.get_by_role("link", name=array.pk).first.click()
    expect(page.locator("#array")).to_contain_text("1 succeeded, 2 cancelled")


def submit_array(page: Any) -> None:
    """Ask for three learning rates, one at a time, after a value that was given twice."""
    from playwright.sync_api import expect

    page.get_by_label("A job for each").select_option("learning_rate")
    page.get_by_label("Of these values").fill("1e-4, 2e-4, 1e-4")
    page.get_by_label("At a time").fill("1")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("Give each value once.")).to_be_visible()
    look(page, "array-refused")
    assert not Job.objects.exists()
    page.get_by_label("Of these values").fill("1e-4, 2e-4, 5e-4")
    page.get_by_role("button", name="Submit").click()


def cancel_all(page: Any, array: JobArray) -> None:
    """Press the button above the array's jobs; one of them runs, and one waits."""
    from playwright.sync_api import expect

    page.goto(array.get_absolute_url())
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel all").click()
    expect(page.get_by_text("Cancelled: 1 job. Being stopped: 1 job.")).to_be_visible()


def begin(page: Any, name: str, file: str) -> None:
    """The form of a new job with its required values, and what is below *More* open."""
    page.goto("/jobs/new/")
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    page.get_by_label("Training data", exact=True).select_option(file)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_text("More", exact=False).first.click()


def submit_after(page: Any, name: str, earlier: Job | JobArray) -> str:
    """Submit a job that comes after another one, or after a whole array; returns the address of its page."""
    from playwright.sync_api import expect

    begin(page, name, Job.objects.order_by("submitted_at")[0].training_file_id)
    page.get_by_label("After these jobs").select_option(earlier.pk)
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="Comes after")).to_be_visible()
    return str(page.url)
