"""Readings of sentences and scripts in a real browser.

It is a script of another trainer, and the log of a failed job.
"""

from __future__ import annotations

from typing import Any

from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.harness import fake_node, world
from tests.portal.browser.looking import look, sign_in

SCRIPT = """base_model: meta-llama/a-model-with-a-name-that-is-rather-long-for-a-small-telephone
adapter: lora
lora_r: 16
gradient_accumulation_steps: 4
learning_rate: 3e-5
datasets:
  - path: acme/a-set-of-conversations-with-a-long-name
"""
BARS = "".join(f" {n}%|# | {n}/100 [00:{n:02}<01:00, loss=3.{n}]\n" for n in range(5))
ERROR = "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB. " + "0x7f" * 60
LOG = f"step 3/50  loss 2.1000  90 tokens/s\nTraceback (most recent call last):\n{ERROR}\n"


def test_a_configuration_fills_the_form_and_says_where_from(page: Any, person: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    file = world.data_file(person)
    sign_in(page)
    page.goto("/jobs/new/")
    page.get_by_role("link", name="Import a script").click()
    page.get_by_role("link", name="Read a log").click()
    page.get_by_label("or its lines as text").fill(BARS)
    page.get_by_role("button", name="Read it").click()
    expect(page.get_by_text("It came to step 4 of 100, 4 %.")).to_be_visible()
    look(page, "log-elsewhere")
    page.goto("/jobs/import/")
    page.get_by_label("or a script or configuration as text").fill(SCRIPT)
    page.get_by_label("Command").fill("axolotl train script.yaml --lora_r 8")
    page.get_by_role("button", name="Read it").click()
    expect(page.get_by_text("script.yaml:5")).to_be_visible()
    expect(page.get_by_text("instead of 16 in script.yaml, line 3")).to_be_visible()
    look(page, "import-read")
    page.get_by_role("link", name="Use these values").click()
    expect(page.get_by_label("Base model")).to_have_value(
        "meta-llama/a-model-with-a-name-that-is-rather-long-for-a-small-telephone"
    )
    expect(page.locator("#id_params-lora_r")).to_have_value("8")
    expect(page.get_by_text("From script.yaml, line 5.")).to_be_visible()
    page.get_by_label("Base model").fill("builtin/tiny-llama")
    page.locator("#id_params-lora_r").fill("4")
    page.locator("#id_training_file").select_option(file.pk)
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    fates = {name: one["fate"] for name, one in Job.objects.get().reading.fields.items()}
    assert (fates["model"], fates["lora_r"], fates["learning_rate"]) == ("changed", "changed", "kept")


def test_a_failed_job_is_explained_and_mended(opened: Any) -> None:
    from playwright.sync_api import expect

    node = world.fake_node(name="gpu-box")
    first = world.job(world.user("mira"), name="large", params={"per_device_batch_size": 4})
    tick()
    order = node.take_up()
    node.run(order, fake_node.step(3), {"kind": "log", "body": {"text": LOG}})
    node.end(order, "error", reason="")
    page = opened()
    sign_in(page, "mira")
    page.goto(first.get_absolute_url())
    expect(page.get_by_text("Next time: Batch size per GPU 2.")).to_be_visible()
    look(page, "job-explained")
    page.get_by_role("link", name="Line 3 of the log").click()
    expect(page.get_by_text("Around line 3.")).to_be_visible()
    page.get_by_label("Ask the log").fill("How far is it?")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_text("It came to step 3 of 50, 6 %.")).to_be_visible()
    look(page, "log-asked")
    page.get_by_role("link", name="Fix it and submit again").click()
    expect(page.get_by_text("Changed: The training needed more main memory")).to_be_visible()
    look(page, "job-mended")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    second = Job.objects.exclude(pk=first.pk).get()
    assert second.fixed["per_device_batch_size"] == 2
