"""Say it in a sentence: from a sentence, an answer and a correction to a submitted job."""

from __future__ import annotations

from typing import Any

from scheduler.models import Job
from tests.harness import world
from tests.portal.browser.looking import look, sign_in


def say(page: Any, text: str) -> Any:
    """Type a sentence, and send it with the keyboard."""
    page.get_by_label("Say it in a sentence").fill(text)
    page.keyboard.press("Enter")
    return page.locator("#understood")


def test_a_sentence_a_question_a_correction_and_the_job(page: Any, person: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    file = world.data_file(person)
    sign_in(page)
    page.goto("/jobs/new/")
    page.get_by_label("Name", exact=True).fill("mine")
    reported = say(page, "lora on builtin/tiny-llama, rank 8, 40 steps, call it theirs, then deploy it")
    expect(reported).to_contain_text("deploying")
    expect(page.get_by_label("LoRA rank", exact=True)).to_have_value("8")
    expect(page.locator("#id_params-lora_r_said")).to_have_text("stated: “rank 8”")
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    expect(page.locator("#id_name_said")).to_contain_text("theirs")
    expect(page.get_by_label("LoRA rank", exact=True)).to_be_hidden()
    inside = page.locator("summary", has_text="All parameters").locator("[data-said-inside]")
    for part in ("Filled from your sentence:", "Tuning lora", "LoRA rank 8", "Max steps 40"):
        expect(inside).to_contain_text(part)
    look(page, "say-it")
    reported.get_by_role("button", name="Max steps").press("Enter")
    expect(page.get_by_label("Max steps")).to_be_focused()
    page.get_by_label("Max steps").fill("50")
    expect(page.locator("#id_params-max_steps_said")).to_have_count(0)
    say(page, "lora on builtin/tiny-llama, rank 4, 40 steps")
    expect(page.get_by_label("LoRA rank", exact=True)).to_have_value("4")
    expect(page.get_by_label("Max steps")).to_have_value("50")
    reported.get_by_role("button", name=file.filename).press("Enter")
    expect(page.locator("#id_training_file")).to_have_value(file.pk)
    assert not Job.objects.exists()
    page.get_by_role("button", name="Submit job").click()
    page.wait_for_url("**/jobs/ftjob-*/")
    job = Job.objects.get()
    assert (job.name, job.fixed) == ("mine", {"tuning": "lora", "lora_r": 4, "max_steps": 50})
    assert job.reading.said == "lora on builtin/tiny-llama, rank 4, 40 steps"
    assert {name: one["fate"] for name, one in job.reading.fields.items()} == {
        "model": "kept", "tuning": "kept", "lora_r": "kept",
    }  # fmt: skip
    page.get_by_role("link", name="Parameters").click()
    expect(page.get_by_text("“rank 4”")).to_be_visible()
    look(page, "job-read-values")


def tab_to(page: Any, wanted: Any) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(200):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {wanted}")


def test_the_keyboard_alone_says_answers_corrects_and_submits(page: Any, person: Any) -> None:
    from playwright.sync_api import expect

    world.fake_node(slots=2)
    file = world.data_file(person)
    sign_in(page)
    page.goto("/jobs/new/")
    tab_to(page, page.get_by_label("Say it in a sentence"))
    page.keyboard.type("lora on builtin/tiny-llama, rank 8, on 300 GPUs")
    page.keyboard.press("Enter")
    reported = page.locator("#understood")
    expect(reported).to_contain_text("cannot give 300 GPUs to one job")
    look(page, "say-it-too-many")
    answer = reported.get_by_role("button", name=file.filename)
    tab_to(page, answer)
    page.keyboard.press("Enter")
    expect(page.locator("#id_training_file")).to_have_value(file.pk)
    expect(page.locator("#recommended")).to_contain_text("cannot give 300 GPUs to one job")
    tab_to(page, reported.get_by_role("button", name="Number of GPUs"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Number of GPUs", exact=True)).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("2")
    expect(page.locator("#id_params-number_gpus_said")).to_have_count(0)
    tab_to(page, page.get_by_role("button", name="Submit job"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/ftjob-*/")
    assert Job.objects.get().fixed == {"tuning": "lora", "lora_r": 8, "number_gpus": 2}


def test_what_the_sentence_filled_is_cleared_and_nothing_else(page: Any, person: Any) -> None:
    from playwright.sync_api import expect

    world.data_file(person)
    sign_in(page)
    page.goto("/jobs/new/")
    page.get_by_label("Name", exact=True).fill("mine")
    reported = say(page, "phi-4, 3 epochs, cheap")
    expect(page.get_by_label("Goal")).to_have_value("cheapest")
    reported.get_by_role("button", name="Clear what the sentence filled").click()
    expect(page.get_by_label("Base model")).to_have_value("")
    expect(page.get_by_label("Epochs")).to_have_value("")
    expect(page.get_by_label("Goal")).to_have_value("balanced")
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    expect(page.locator("[id$=_said]")).to_have_count(0)
    expect(page.locator("[data-said-inside]")).to_have_count(0)
