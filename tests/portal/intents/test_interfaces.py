"""A sentence through REST and on the page of a new job: shown, marked, and never submitted."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.time_zones import local
from scheduler.models import DatasetFile, Job
from tests.harness import world
from tests.portal.conftest import token_client

API, PAGE = "/api/intents/", "/jobs/new/intent/"
NOW = "2026-03-10T15:00:00+01:00"


def asked(client: APIClient, text: str, **more: Any) -> dict[str, Any]:
    answer = client.post(API, {"text": text, **more}, format="json")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def page(client: Client, said: str, **more: str) -> tuple[str, list[dict[str, str]]]:
    answer = client.post(PAGE, {"said": said, **more})
    assert answer.status_code == 200
    text = answer.content.decode()
    filled = re.search(r'<script id="intent-fill" type="application/json">(.*?)</script>', text)
    return text, json.loads(filled[1]) if filled else []


@pytest.fixture
def poems(person: User) -> DatasetFile:
    return world.data_file(person, filename="poems.jsonl")


def test_a_draft_is_what_a_submission_takes(api: APIClient, poems: DatasetFile) -> None:
    found = asked(api, "lora on builtin/tiny-llama with my poems, rank 8, in 6 hours, call it haiku")
    assert found["fields"]["training_file"]["origin"] == "inferred"
    assert found["draft"]["training_file"] == poems.pk
    assert found["question"] is None
    assert not Job.objects.exists()
    answer = api.post("/api/jobs/", found["draft"], format="json")
    assert answer.status_code == 201, answer.content
    job = Job.objects.get()
    assert (job.name, job.fixed, job.goal) == ("haiku", {"tuning": "lora", "lora_r": 8}, "deadline")


def test_complaints_are_those_of_the_ordinary_check(api: APIClient, poems: DatasetFile) -> None:
    text = "full fine-tuning of builtin/tiny-llama on poems.jsonl with rank 16 and a budget of 0"
    found = asked(api, text)
    refused = api.post("/api/jobs/", found["draft"], format="json")
    assert refused.status_code == 400
    assert found["complaints"].keys() == {"lora_r", "budget"}


@pytest.mark.parametrize(
    ("said", "field", "complaint"),
    [
        ("300 GPUs", "number_gpus", "cannot give 300 GPUs to one job on up to 2 nodes; choose fewer GPUs"),
        ("on 9 A100s", "number_gpus", "cannot give 9 GPUs"),
        ("3 nodes", "number_nodes", "may use at most 2 nodes here, and you asked for 3"),
        ("on an H200", "gpu_model", "No node in service offers H200"),
    ],
)
def test_a_place_that_no_nodes_give_is_complained_about_as_beside_the_form(
    api: APIClient, browser: Client, poems: DatasetFile, settings: Any, said: str, field: str, complaint: str
) -> None:
    """A submission may still ask for it, and then waits."""
    settings.MAX_NODES_PER_JOB = 2
    world.fake_node(slots=8, model="A100-SXM4-80GB", memory_bytes=80 << 30)
    found = asked(api, f"builtin/tiny-llama on poems.jsonl, {said}")
    complaints = found["complaints"]
    assert list(complaints) == [field]
    assert complaint in complaints[field]
    text, rows = page(browser, f"builtin/tiny-llama on poems.jsonl, {said}")
    assert complaint in text
    form = {row["name"]: row["value"] for row in rows}
    assert complaints[field] in browser.get("/jobs/new/advice/", form).content.decode()
    assert api.post("/api/jobs/", found["draft"], format="json").status_code == 201


@pytest.mark.parametrize("said", ["on 8 A100s", "on one A100", "16 GPUs", "two nodes"])
def test_a_place_that_nodes_give_is_not_complained_about(api: APIClient, settings: Any, said: str) -> None:
    settings.MAX_NODES_PER_JOB = 2
    for _ in range(2):
        world.fake_node(slots=8, model="A100-SXM4-80GB", memory_bytes=80 << 30)
    assert asked(api, said)["complaints"] == {}


def test_before_the_first_node_a_number_of_gpus_may_yet_be_given(api: APIClient) -> None:
    assert asked(api, "300 GPUs")["complaints"] == {}


def test_a_strangers_file_is_as_one_that_does_not_exist(stranger: APIClient, poems: DatasetFile) -> None:
    for text in ("phi-4 on poems.jsonl", "phi-4 on the poems"):
        found = asked(stranger, text)
        assert "training_file" not in found["fields"]
        assert found["question"]["field"] == "training_file"
        assert found["question"]["choices"] == []


def test_only_own_teams_are_read(api: APIClient, person: User) -> None:
    Membership.objects.create(team=Team.objects.create(name="nlp"), user=person, role=Role.MEMBER)
    Team.objects.create(name="search")
    assert asked(api, "for the nlp team")["draft"]["team"] == "nlp"
    assert "team" not in asked(api, "for the search team")["draft"]


def test_times_count_in_the_named_zone_and_from_the_given_moment(admin_api: APIClient) -> None:
    found = asked(admin_api, "phi-4 by tomorrow 9am", timezone="Asia/Tokyo", now=NOW)
    assert found["fields"]["deadline_at"]["value"] == "2026-03-11T09:00:00+09:00"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "x" * 1001}, "text"),
        ({"text": 7}, "text"),
        ({"text": "hi", "timezone": "Mars/Olympus"}, "timezone"),
        ({"text": "hi", "now": NOW}, "now"),
        ({"text": "hi", "model": "phi-4"}, "model"),
    ],
)
def test_bad_input_names_the_field(api: APIClient, body: dict[str, Any], field: str) -> None:
    answer = api.post(API, body, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]


def test_the_page_shows_values_words_and_what_the_form_takes(browser: Client, poems: DatasetFile) -> None:
    text, rows = page(browser, "tiny llama on my poems, 3 epochs, deploy it", time_zone="Europe/Berlin")
    by_name = {row["name"]: row for row in rows}
    assert by_name["training_file"]["value"] == poems.pk
    assert by_name["params-epochs"] == {
        "name": "params-epochs", "value": "3", "label": "3", "mark": "stated: “3 epochs”",
    }  # fmt: skip
    assert by_name["training_file"]["mark"].startswith("inferred: ")
    assert "<em>deploy</em>" in text
    assert not Job.objects.exists()


def test_a_deadline_stands_in_the_zone_of_the_form(browser: Client) -> None:
    text, rows = page(browser, "by 2030-03-12 17:00", time_zone="Asia/Tokyo")
    (deadline,) = [row for row in rows if row["name"] == "deadline_at"]
    assert deadline["value"] == "2030-03-12T17:00"
    assert "Asia/Tokyo" in text


def test_a_question_is_buttons_that_fill_a_field(browser: Client, poems: DatasetFile) -> None:
    text, _ = page(browser, "phi-4")
    (fill,) = re.findall(r'data-fill="([^"]+)"', text)
    assert json.loads(html.unescape(fill)) == {"training_file": poems.pk}


def test_what_was_typed_is_escaped(browser: Client) -> None:
    text, _ = page(browser, "<script>alert(1)</script> {{ 77*90001 }} call it '<b>x</b>'")
    assert "<script>alert" not in text
    assert "<b>x" not in text
    assert "6930077" not in text


@pytest.mark.parametrize("said", ["", "x" * 1001, "phi-4 \x00"])
def test_a_sentence_that_cannot_be_read_is_answered_in_words(browser: Client, said: str) -> None:
    text, rows = page(browser, said)
    assert 'role="alert"' in text
    assert rows == []


@pytest.mark.parametrize("model", ["tiny llama", "tiny lama", "tiny-lama"])
def test_two_words_that_may_be_two_models_are_asked_about(
    api: APIClient, poems: DatasetFile, model: str
) -> None:
    found = asked(api, f"{model} on my poems by tonight, under $30", timezone="Europe/Berlin")
    assert "model" not in found["fields"]
    values = [choice["value"] for choice in found["question"]["choices"]]
    assert values == ["builtin/tiny-llama", "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"]
    assert found["fields"]["deadline_at"]["origin"] == "stated"


def test_files_of_one_name_are_told_apart_and_asked_about(
    browser: Client, api: APIClient, person: User
) -> None:
    """In the form by rows, owner, team and date; a sentence that names one of several is asked back."""
    team = Team.objects.create(name="research")
    eve = world.user("eve")
    for member in (person, eve):
        Membership.objects.create(team=team, user=member)
    own = world.data_file(person, rows=20, filename="questions.jsonl")
    theirs = world.data_file(eve, rows=30, filename="questions.jsonl")
    alone = world.data_file(person, rows=10, filename="alone.jsonl")
    DatasetFile.objects.filter(pk=theirs.pk).update(team=team)
    asker = User.objects.get(pk=person.pk)
    browser.force_login(asker)
    at = f"{local(own.created_at):%Y-%m-%d}"
    labels = {
        own.pk: f"questions.jsonl (20 rows), yours, {at}",
        theirs.pk: f"questions.jsonl (30 rows), of eve for research, {at}",
        alone.pk: f"alone.jsonl (10 rows), yours, {at}",
    }
    form = browser.get("/jobs/new/").content.decode()
    for pk, label in labels.items():
        assert f'<option value="{pk}">{label}</option>' in form
    program = token_client(asker)
    answer = asked(program, "llama 3.1 8b on questions.jsonl, rank 8")
    assert "training_file" not in answer["draft"]
    assert answer["question"]["field"] == "training_file"
    assert {one["value"]: one["label"] for one in answer["question"]["choices"]} == {
        pk: labels[pk] for pk in (own.pk, theirs.pk)
    }
    shown, _ = page(browser, "llama 3.1 8b on questions.jsonl")
    assert "Which of the files named questions.jsonl?" in shown
    assert labels[theirs.pk] in shown
    clear = asked(program, "llama 3.1 8b on alone.jsonl")
    assert (clear["draft"]["training_file"], clear["question"]) == (alone.pk, None)
    open_model = asked(program, "llama on questions.jsonl")
    assert open_model["question"]["field"] == "model"
    assert "2 files are named questions.jsonl: choose one in the form." in open_model["notes"]


def test_files_alike_in_all_of_these_are_told_apart_by_the_time(browser: Client, person: User) -> None:
    for second in (1, 2):
        file = world.data_file(person, filename="same.jsonl")
        at = file.created_at.replace(hour=12, minute=0, second=second)
        DatasetFile.objects.filter(pk=file.pk).update(created_at=at)
    form = browser.get("/jobs/new/").content.decode()
    assert ":00:01</option>" in form
    assert ":00:02</option>" in form
