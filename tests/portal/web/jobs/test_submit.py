"""The form of a new job through the test client.

The tests cover accepted and refused input.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from portal.accounts.models import Membership, Team, User
from scheduler.models import DatasetFile, Job, JobArray
from scheduler.services.files.uploads import path_of
from tests.harness import world
from trainer.recipes import DEFAULT_RECIPE, RECIPES

Form = Callable[..., dict[str, Any]]


@pytest.fixture
def form(data_file: DatasetFile) -> Form:
    """The form as a browser sends it: empty fields are sent as well."""

    def make(**values: Any) -> dict[str, Any]:
        filled = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "goal": "balanced"}
        return {**filled, "name": "", "key": "form-1", "params-epochs": "", "budget": "", **values}

    return make


def test_two_fields_submit_a_job(browser: Client, form: Form) -> None:
    answer = browser.post("/jobs/new/", form())
    job = Job.objects.get()
    assert answer["Location"] == f"/jobs/{job.pk}/"
    assert job.fixed == {}


def test_nobody_is_asked_for_a_recipe_where_there_is_one(browser: Client, form: Form) -> None:
    assert ('name="recipe"' in browser.get("/jobs/new/").content.decode()) is (len(RECIPES) > 1)
    browser.post("/jobs/new/", form())
    assert Job.objects.get().recipe == DEFAULT_RECIPE.name


def test_everything_that_can_be_said_is_kept(browser: Client, form: Form, person: User) -> None:
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person)
    validation = world.data_file(person, rows=5)
    deadline = (timezone.now() + timedelta(days=1)).replace(second=0, microsecond=0)
    begin, first = deadline - timedelta(hours=3), world.job(person)
    said = {
        "validation_file": validation.pk,
        "team": str(team.pk),
        "deadline_at": deadline.strftime("%Y-%m-%dT%H:%M"),
        "begin_at": begin.strftime("%Y-%m-%dT%H:%M"),
        "after": first.pk,
        "after_kind": "ended",
        "budget": "12.5",
        "retries": "2",
        "params-gradient_checkpointing": "false",
    }
    assert browser.post("/jobs/new/", form(**said)).status_code == 302
    job = Job.objects.exclude(pk=first.pk).get()
    assert (job.begin_at, [one.on for one in job.dependencies.all()]) == (begin, [first])
    again = browser.get(f"/jobs/new/?from={job.pk}").content.decode()
    assert f'value="{begin:%Y-%m-%dT%H:%M}"' in again
    assert f'<option value="{first.pk}" selected>' in again
    assert first.pk in browser.get(f"/jobs/{job.pk}/").content.decode()
    assert (job.validation_file, job.team, job.deadline_at) == (validation, team, deadline)
    assert (job.budget, job.retries, job.fixed) == (12.5, 2, {"gradient_checkpointing": False})


def test_a_job_for_each_of_some_values(browser: Client, form: Form) -> None:
    said = form(sweep="learning_rate", sweep_values="1e-4, 2e-4,5e-4", sweep_limit="2", name="rates")
    answer = browser.post("/jobs/new/", said)
    array = JobArray.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/jobs/?q={array.pk}")
    jobs = array.jobs.order_by("submitted_at")
    assert [job.fixed["learning_rate"] for job in jobs] == [1e-4, 2e-4, 5e-4]
    assert ([job.name for job in jobs], array.limit) == (["rates 1", "rates 2", "rates 3"], 2)
    again = browser.post("/jobs/new/", said)
    assert (again["Location"], Job.objects.count()) == (answer["Location"], 3)


@pytest.mark.parametrize(
    ("sweep", "values", "message"),
    [
        ("learning_rate", "", "Give 2 to 1000 values"),
        ("learning_rate", "1e-4", "Give 2 to 1000 values"),
        ("learning_rate", "1e-4,,2e-4", "Give 2 to 1000 values"),
        ("learning_rate", "1e-4, fast", "fast: Enter a number in the digits 0 to 9, e.g. 0.5 or 1e-4."),
        ("learning_rate", "1e-4, nan", "nan: Enter a number in the digits 0 to 9, e.g. 0.5 or 1e-4."),
        ("lora_r", "8, 1000000", "1000000: "),
        ("lora_r", "8, 8", "Give each value once."),
        ("", "8, 16", "Choose the parameter"),
        ("tuning", "lora, lara", "lara: Select a valid choice"),
        ("nothing", "1, 2", "Select a valid choice"),
        ("gpu_model", "cpu, CPU", "must differ from each other; numbers 1 and 2 mean the same"),
        ("gpu_model", "cpu, abacus", "abacus: "),
    ],
)
def test_bad_values_are_told_at_their_field(
    browser: Client, form: Form, sweep: str, values: str, message: str
) -> None:
    answer = browser.post("/jobs/new/", form(sweep=sweep, sweep_values=values))
    assert answer.status_code == 400
    assert message in answer.content.decode()
    assert not answer.context["form"].non_field_errors()
    assert not Job.objects.exists()


def test_a_number_at_a_time_goes_with_several_jobs(browser: Client, form: Form) -> None:
    answer = browser.post("/jobs/new/", form(sweep_limit="2"))
    assert answer.status_code == 400
    assert "choose the parameter in which they differ" in answer.context["form"].errors["sweep_limit"][0]
    assert not Job.objects.exists()


def test_files_can_be_sent_with_the_form(browser: Client) -> None:
    files = {
        "upload": SimpleUploadedFile("rows.jsonl", world.training_lines(5)),
        "validation_upload": SimpleUploadedFile("few.jsonl", world.training_lines(2)),
    }
    answer = browser.post("/jobs/new/", {"model": "builtin/tiny-llama", "key": "k", **files})
    assert answer.status_code == 302
    job = Job.objects.get()
    assert job.validation_file is not None
    assert (job.training_file.rows, job.validation_file.rows) == (5, 2)


def test_a_bad_file_sent_with_the_form_is_told_by_line(browser: Client) -> None:
    bad = {"upload": SimpleUploadedFile("rows.jsonl", b"{bad")}
    answer = browser.post("/jobs/new/", {"model": "builtin/tiny-llama", "key": "k", **bad})
    assert answer.status_code == 400
    assert "line 1" in answer.context["form"].errors["upload"][0]
    assert not DatasetFile.objects.exists()


def test_a_double_click_and_the_back_button_make_one_job(browser: Client, form: Form) -> None:
    places = {browser.post("/jobs/new/", form())["Location"] for _ in range(3)}
    assert len(places) == Job.objects.count() == 1


def test_a_form_sent_again_with_other_values_asks_before_it_makes_another_job(
    browser: Client, form: Form
) -> None:
    browser.post("/jobs/new/", form())
    changed = browser.post("/jobs/new/", form(name="other"))
    assert b"This form was already submitted" in changed.content
    assert Job.objects.count() == 1
    again = changed.context["form"]["key"].value()
    assert browser.post("/jobs/new/", form(name="other", key=again)).status_code == 302
    assert Job.objects.count() == 2


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("model", "x" * 301),
        ("model", "no-such-model"),
        ("model", "a\x00b"),
        ("training_file", "file-none"),
        ("training_file", "a\x00b"),
        ("training_file", ""),
        ("validation_file", "file-none"),
        ("team", "1"),
        ("name", "x" * 1_000_000),
        ("goal", "best"),
        ("deadline_at", "2001-01-01T00:00"),
        ("deadline_at", "tomorrow"),
        ("budget", "-1"),
        ("budget", "0"),
        ("budget", "1e999"),
        ("budget", "NaN"),
        ("budget", "1,5"),
        ("retries", "11"),
        ("retries", "9" * 400),
        ("params-epochs", "NaN"),
        ("params-epochs", "1e999"),
        ("params-epochs", "-1"),
        ("params-epochs", "1,5"),
        ("params-lora_r", "9" * 400),
        ("params-lora_r", "1.5"),
        ("params-seed", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace")),
        ("params-tuning", "magic"),
        ("params-gpu_model", "abacus"),
    ],
)
def test_a_wrong_value_is_told_at_its_field_and_the_others_are_kept(
    browser: Client, form: Form, field: str, value: str
) -> None:
    answer = browser.post("/jobs/new/", form(**{"params-max_steps": "7", field: value}))
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert b'value="7"' in answer.content
    assert not Job.objects.exists()


def test_hidden_extra_fields_are_ignored_and_logged(
    browser: Client, form: Form, caplog: pytest.LogCaptureFixture, person: User
) -> None:
    with caplog.at_level(logging.WARNING):
        browser.post("/jobs/new/", form(owner="1", state="succeeded", fence="9"))
    job = Job.objects.get()
    assert (job.owner, job.state) == (person, "queued")
    assert "fence, owner, state" in caplog.text


def test_a_clone_begins_with_what_its_job_was_asked_for(browser: Client, person: User) -> None:
    job = world.job(
        person, name="first", goal="fastest", params={"lora_r": 4, "gradient_checkpointing": True}
    )
    form = browser.get("/jobs/new/", {"from": job.pk}).context["form"]
    begun = {name: form[name].value() for name in ("model", "training_file", "goal", "name")}
    assert begun == {
        "model": job.model,
        "training_file": job.training_file_id,
        "goal": "fastest",
        "name": "first",
    }
    assert (form["params-lora_r"].value(), form["params-gradient_checkpointing"].value()) == (4, "true")
    assert form["params-seed"].value() is None


def test_a_strangers_job_cannot_be_cloned(browser: Client) -> None:
    assert browser.get("/jobs/new/", {"from": world.job().pk}).status_code == 404


def test_no_sample_is_longer_than_its_model_has_positions(browser: Client, form: Form) -> None:
    asked = {"model": "openai-community/gpt2", "params-tokens_per_sample": "1025"}
    why = "openai-community/gpt2 has 1,024 positions: choose at most 1024 tokens per sample."
    told = browser.get("/jobs/new/advice/", form(**asked)).content.decode()
    assert why in told
    refused = browser.post("/jobs/new/", form(**asked))
    assert refused.context["form"].errors == {"params-tokens_per_sample": [why]}
    browser.post("/jobs/new/", form(**asked | {"params-tokens_per_sample": "1024"}))
    assert Job.objects.get().params["tokens_per_sample"] == 1024


def test_models_are_offered_with_their_size(browser: Client) -> None:
    page = browser.get("/jobs/new/").content.decode()
    assert 'value="builtin/tiny-llama"' in page
    assert "B parameters" in page


def test_a_goal_with_a_limit_is_taken_and_asks_for_the_limit(browser: Client, form: Form) -> None:
    for goal, field in (("deadline", "deadline_at"), ("budget", "budget")):
        refused = browser.post("/jobs/new/", form(goal=goal))
        assert refused.status_code == 400
        assert list(refused.context["form"].errors) == [field]
    browser.post("/jobs/new/", form(goal="budget", budget="5"))
    assert (Job.objects.get().goal, Job.objects.get().budget) == ("budget", 5)


def test_a_job_with_a_deadline_can_be_repeated_as_it_was(browser: Client, form: Form) -> None:
    deadline = (timezone.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    page = browser.post("/jobs/new/", form(goal="deadline", deadline_at=deadline))["Location"]
    again = browser.get(f"/jobs/new/?from={page.strip('/').split('/')[-1]}").content.decode()
    assert f'value="{deadline}"' in again
    assert "deadline_at" in browser.get(f"{page}?tab=repeat").content.decode()


def test_the_report_of_a_file_names_fields_that_are_not_used_and_what_later_rules_refuse(
    browser: Client,
) -> None:
    content = b'{"prompt": "1 + 1?", "completion": "2", "<source>": "mine"}\n'
    sent = browser.post("/jobs/new/upload/", {"upload": SimpleUploadedFile("a.jsonl", content)})
    assert "Unused fields: &lt;source&gt;." in sent.content.decode()
    file = DatasetFile.objects.get()
    path_of(file.sha256).write_bytes(content.replace(b"<source>", b"label"))
    report = browser.get(f"/jobs/new/file/?training_file={file.pk}").content.decode()
    assert "It can no longer be used: line 1: holds label, which tells good answers from bad ones" in report
