"""A training script of another trainer becomes the beginning of a job, in a real browser."""

from __future__ import annotations

from typing import Any

from tests.portal.browser.looking import look, sign_in

SCRIPT = """base_model: meta-llama/a-model-with-a-name-that-is-rather-long-for-a-small-telephone
adapter: lora
lora_r: 16
gradient_accumulation_steps: 4
learning_rate: 3e-5
datasets:
  - path: acme/a-set-of-conversations-with-a-long-name
"""


def test_a_configuration_fills_the_form_and_says_where_from(page: Any, person: Any) -> None:
    from playwright.sync_api import expect

    sign_in(page)
    page.goto("/jobs/new/")
    page.get_by_role("link", name="Import a script").click()
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
