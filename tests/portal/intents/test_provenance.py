"""A job keeps where its values were read, and what people did with them is counted."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Role, Team, User
from scheduler.models import DatasetFile, Job, JobReading, ReadSource
from scheduler.services.provenance.read_values import ReadValue, ReadValueChoice, ReadValues, choice_of
from scheduler.services.provenance.sealed import sealed
from tests.harness import world

SAID = "lora on builtin/tiny-llama with my poems, rank 8, 40 steps, call it haiku"


@pytest.fixture
def poems(person: User) -> DatasetFile:
    return world.data_file(person, filename="poems.jsonl")


def filled(browser: Client) -> dict[str, str]:
    """Say the sentence; returns the form as the page fills it."""
    text = browser.post("/jobs/new/intent/", {"said": SAID}).content.decode()
    found = re.search(r'<script id="intent-fill" type="application/json">(.*?)</script>', text)
    seal = re.search(r'data-read="([^"]+)"', text)
    assert found
    assert seal
    values = {row["name"]: row["value"] for row in json.loads(found[1])}
    return {**values, "read_sentence": seal[1], "read_fields": ",".join(values), "key": "one"}


def submitted(browser: Client, **changed: str) -> Job:
    """Submit what the sentence fills, with changes."""
    answer = browser.post("/jobs/new/", {**filled(browser), **changed})
    assert answer.status_code == 302, answer.content
    return Job.objects.get()


def counts(api: APIClient) -> dict[str, tuple[int, int, int]]:
    rows = api.get("/api/read-values/").json()["data"]
    return {row["field"]: (row["kept"], row["changed"], row["cleared"]) for row in rows}


def test_a_job_keeps_the_sentence_and_what_became_of_its_values(
    browser: Client, admin_browser: Client, api: APIClient, poems: DatasetFile
) -> None:
    job = submitted(browser, **{"params-max_steps": "50", "name": ""})
    found = api.get(f"/api/jobs/{job.pk}/").json()["read"]
    assert found["said"] == SAID
    assert found["fields"]["lora_r"] == {
        "source": "sentence", "value": 8, "origin": "stated", "because": "“rank 8”", "fate": "kept",
    }  # fmt: skip
    assert found["fields"]["training_file"]["origin"] == "inferred"
    assert found["fields"]["max_steps"]["fate"] == "changed"
    assert "name" not in found["fields"]
    reported = counts(api)
    assert (reported["lora_r"], reported["max_steps"], reported["name"]) == ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    text = browser.get(f"/jobs/{job.pk}/?tab=parameters").content.decode()
    assert SAID in text
    assert "changed from 40" in text
    form = browser.get("/jobs/new/", {"from": job.pk}).context["form"]
    assert form["params-lora_r"].help_text.startswith("From your sentence: “rank 8”.")
    assert "were right as read" in admin_browser.get("/analytics/").content.decode()


def test_the_sentence_is_its_owners_alone(browser: Client, stranger: APIClient, poems: DatasetFile) -> None:
    job = submitted(browser)
    team = Team.objects.create(name="nlp")
    for user in (job.owner, User.objects.exclude(pk=job.owner_id).get()):
        Membership.objects.create(team=team, user=user, role=Role.MEMBER)
    Job.objects.update(team=team)
    assert stranger.get(f"/api/jobs/{job.pk}/").json()["read"] is None


def test_a_sentence_of_which_all_was_cleared_is_counted_and_not_kept(
    browser: Client, api: APIClient, person: User, poems: DatasetFile
) -> None:
    other = world.data_file(person, rows=30)
    empty = {"params-lora_r": "", "params-max_steps": "", "params-tuning": "", "name": ""}
    job = submitted(browser, **empty, read_fields="params-lora_r,name", training_file=other.pk)
    assert not JobReading.objects.exists()
    assert api.get(f"/api/jobs/{job.pk}/").json()["read"] is None
    assert counts(api) == {"lora_r": (0, 0, 1), "name": (0, 0, 1)}


def test_the_same_form_twice_is_counted_once(browser: Client, api: APIClient, poems: DatasetFile) -> None:
    form = filled(browser)
    answers = [browser.post("/jobs/new/", form).status_code for _ in range(2)]
    assert answers == [302, 302]
    assert counts(api)["lora_r"] == (1, 0, 0)


def test_a_draft_takes_its_reading_along_and_a_script_too(api: APIClient, poems: DatasetFile) -> None:
    draft = api.post("/api/intents/", {"text": SAID}, format="json").json()["draft"]
    body = api.post("/api/jobs/", draft, format="json").json()
    assert body["read"]["said"] == SAID
    read = api.post("/api/imports/", {"command": "torchrun t.py --learning_rate 3e-5 --seed 7"}).json()
    params = {**read["job"]["parameters"], "seed": 8}
    request = {"model": "builtin/tiny-llama", "training_file": poems.pk, "params": params}
    body = api.post("/api/jobs/", {**request, "reading": read["reading"]}, format="json").json()
    fates = {name: (one["because"], one["fate"]) for name, one in body["read"]["fields"].items()}
    assert fates == {"learning_rate": ("the command", "kept"), "seed": ("the command", "changed")}
    assert body["read"]["said"] == ""


def test_more_than_a_submission_takes_is_not_sealed(person: User) -> None:
    long = "".join(map(str, range(20_000)))
    value = ReadValue(value=long, origin="stated", because="train.py, line 1")
    assert sealed(person, ReadValues(source=ReadSource.SCRIPT, values={"model": value})) == ""


@pytest.mark.parametrize("of", ["nonsense", "another person"])
def test_readings_of_others_are_refused_with_the_remedy(
    of: str, api: APIClient, stranger: APIClient, poems: DatasetFile
) -> None:
    draft = api.post("/api/intents/", {"text": SAID}, format="json").json()["draft"]
    seal = stranger.post("/api/intents/", {"text": "rank 8"}, format="json").json()["draft"]["reading"]
    answer = api.post("/api/jobs/", {**draft, "reading": seal if of != "nonsense" else of}, format="json")
    assert answer.status_code == 400
    assert "read it again" in answer.json()["error"]["fields"]["reading"]
    assert not Job.objects.exists()


def test_sentences_are_exported_only_with_their_owners_consent(
    browser: Client, person: User, poems: DatasetFile
) -> None:
    def exported() -> list[dict[str, Any]]:
        out = StringIO()
        call_command("export_intents", with_consent=True, stdout=out)
        return [json.loads(line) for line in out.getvalue().splitlines()]

    submitted(browser, **{"params-max_steps": "50"})
    assert exported() == []
    answer = browser.post("/settings/", {"time_zone": "Europe/Berlin", "shares_sentences": "on"})
    assert answer.status_code == 302
    (row,) = exported()
    assert (row["text"], row["files"], row["timezone"]) == (SAID, ["poems.jsonl"], "Europe/Berlin")
    assert row["fields"]["training_file"]["value"] == "poems.jsonl"
    assert row["fields"]["max_steps"] == {"value": 40, "origin": "stated", "fate": "changed"}
    assert person.username not in json.dumps(row)
    with pytest.raises(CommandError, match="--with-consent"):
        call_command("export_intents")


@pytest.mark.parametrize(
    ("read", "sent", "fate"),
    [
        (8, 8, ReadValueChoice.KEPT),
        (8, 8.0, ReadValueChoice.KEPT),
        (8, 16, ReadValueChoice.CHANGED),
        (False, False, ReadValueChoice.KEPT),
        (8, None, ReadValueChoice.CLEARED),
        ("haiku", "", ReadValueChoice.CLEARED),
        ("2026-03-11T09:00:31+01:00", datetime(2026, 3, 11, 8, 0, tzinfo=UTC), ReadValueChoice.KEPT),
        ("2026-03-11T09:00:00+01:00", datetime(2026, 3, 11, 9, 0, tzinfo=UTC), ReadValueChoice.CHANGED),
    ],
)
def test_what_a_person_did_with_a_value(read: Any, sent: Any, fate: ReadValueChoice) -> None:
    assert choice_of(read, sent) is fate
