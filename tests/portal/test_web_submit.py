"""The form of a new job through the test client."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.accounts.models import User
from scheduler.models import DatasetFile, Job
from tests.harness import world


@pytest.fixture
def form(data_file: DatasetFile) -> Callable[..., dict[str, Any]]:
    """The form as a browser sends it: empty fields are sent as well."""

    def make(**values: Any) -> dict[str, Any]:
        filled = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "goal": "balanced"}
        return {**filled, "name": "", "key": "form-1", "params-epochs": "", **values}

    return make


def test_two_fields_submit_a_job(browser: Client, form: Callable[..., dict[str, Any]]) -> None:
    answer = browser.post("/jobs/new/", form())
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.pk}/"
    assert job.fixed == {}


def test_a_file_can_be_sent_with_the_form(browser: Client) -> None:
    upload = SimpleUploadedFile("rows.jsonl", world.training_lines(5))
    answer = browser.post("/jobs/new/", {"model": "builtin/tiny-llama", "upload": upload, "key": "k"})
    assert answer.status_code == 302
    assert Job.objects.get().training_file.rows == 5


def test_a_double_click_and_the_back_button_make_one_job(
    browser: Client, form: Callable[..., dict[str, Any]]
) -> None:
    places = {browser.post("/jobs/new/", form())["Location"] for _ in range(3)}
    assert len(places) == Job.objects.count() == 1
    changed = browser.post("/jobs/new/", form(name="other"))
    assert b"This form was sent before" in changed.content
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("model", "x" * 301),
        ("model", "no-such-model"),
        ("model", "a\x00b"),
        ("training_file", "file-none"),
        ("training_file", ""),
        ("name", "x" * 1_000_000),
        ("goal", "best"),
        ("params-epochs", "NaN"),
        ("params-epochs", "1e999"),
        ("params-epochs", "-1"),
        ("params-epochs", "1,5"),
        ("params-lora_r", "9" * 400),
        ("params-lora_r", "1.5"),
        ("params-seed", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace")),
        ("params-method", "magic"),
        ("params-gpu_model", "abacus"),
    ],
)
def test_a_wrong_value_is_told_at_its_field_and_the_others_are_kept(
    browser: Client, form: Callable[..., dict[str, Any]], field: str, value: str
) -> None:
    answer = browser.post("/jobs/new/", form(**{"params-max_steps": "7", field: value}))
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert b'value="7"' in answer.content
    assert not Job.objects.exists()


def test_hidden_extra_fields_are_ignored_and_logged(
    browser: Client, form: Callable[..., dict[str, Any]], caplog: pytest.LogCaptureFixture, person: User
) -> None:
    with caplog.at_level(logging.WARNING):
        browser.post("/jobs/new/", form(owner="1", state="succeeded"))
    job = Job.objects.get()
    assert (job.owner, job.state) == (person, "queued")
    assert "owner, state" in caplog.text


def test_a_chosen_file_is_stored_at_once_or_refused_by_line(browser: Client) -> None:
    good = browser.post(
        "/jobs/new/upload/", {"upload": SimpleUploadedFile("a.jsonl", world.training_lines(3))}
    )
    stored = DatasetFile.objects.get()
    assert f'value="{stored.pk}" selected' in good.content.decode()
    bad = browser.post("/jobs/new/upload/", {"upload": SimpleUploadedFile("a.jsonl", b"{bad")})
    assert b"line 1" in bad.content


def test_the_recommendation_is_shown_with_reasons(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    query = {"model": "builtin/tiny-llama", "training_file": data_file.pk}
    shown = browser.get("/jobs/new/advice/", query).content.decode()
    assert "Tokens per second" in shown
    assert "Learning rate" in shown
    unknown = browser.get("/jobs/new/advice/", {**query, "model": "llama-banana"}).content.decode()
    assert "is not in the catalogue" in unknown
