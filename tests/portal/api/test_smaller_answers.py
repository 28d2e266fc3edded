"""Answers with the fields alone that a program asks for, and compressed ones."""

from __future__ import annotations

import gzip
import json

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.api.common.compression import LEAST_BYTES
from scheduler.models import Job
from tests.harness import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(person: User) -> Job:
    return world.job(person)


def test_an_object_and_the_rows_of_a_list_tell_the_named_fields_alone(api: APIClient, job: Job) -> None:
    whole = api.get(f"/api/jobs/{job.pk}/")
    some = api.get(f"/api/jobs/{job.pk}/?fields=state,progress")
    assert some.json() == {name: whole.json()[name] for name in ("state", "progress")}
    assert some["ETag"] == whole["ETag"]
    page = api.get("/api/jobs/?fields=id&limit=1&state=queued").json()
    assert page["data"] == [{"id": job.pk}]
    assert page["total"] == 1
    assert api.get("/api/arrays/?fields=id").json()["data"] == []
    assert api.get("/api/me/?fields=username").json() == {"username": job.owner.username}


def test_attempts_and_evidence_are_told_on_request_alone(api: APIClient, job: Job) -> None:
    address = f"/api/jobs/{job.pk}/"
    usual = api.get(address)
    for answer in (usual, api.patch(address, {"name": "mine"}, format="json")):
        assert not {"attempts", "evidence"} & answer.json().keys()
    more = api.get(f"{address}?include=evidence,%20attempts").json()
    assert more.keys() - usual.json().keys() == {"attempts", "evidence"}
    assert (more["attempts"], more["evidence"]) == ([], [])
    some = api.get(f"{address}?include=attempts&fields=id,evidence,attempts")
    assert list(some.json()) == ["id", "evidence", "attempts"]
    assert api.get(f"{address}?include=attempts")["ETag"] == some["ETag"]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("jobs/{job}/?fields=stat", "stat is not a field of this answer; did you mean state?"),
        ("jobs/?fields=id,stat", "did you mean state?"),
        ("jobs/{job}/?fields=", "names an empty field"),
        ("jobs/{job}/?fields=id&fields=state", "is given twice"),
        ("executions.csv?fields=model", "leave it out"),
        ("jobs/{job}/?include=attempt", "attempt is not left out of this answer; did you mean attempts?"),
        ("jobs/{job}/?include=state", "known are attempts, evidence"),
        ("jobs/{job}/?include=attempts,", "names an empty field"),
        ("jobs/{job}/?include=", "may not be blank"),
        ("jobs/{job}/?include=attempts&include=evidence", "is given twice"),
    ],
)
def test_fields_that_an_answer_does_not_have_are_refused(
    admin_api: APIClient, job: Job, address: str, reason: str
) -> None:
    refused = admin_api.get("/api/" + address.format(job=job.pk))
    assert refused.status_code == 400
    field = "include" if "include" in address else "fields"
    assert reason in refused.json()["error"]["fields"][field]


def test_a_change_knows_no_fields(api: APIClient, job: Job) -> None:
    refused = api.post(f"/api/jobs/{job.pk}/cancel/?fields=state")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["fields"])
    job.refresh_from_db()
    assert job.state == "queued"


def test_larger_answers_to_tokens_are_compressed_and_others_are_not(
    api: APIClient, browser: Client, job: Job
) -> None:
    address, accepts = f"/api/jobs/{job.pk}/", {"HTTP_ACCEPT_ENCODING": "gzip"}
    plain, packed = api.get(address), api.get(address, **accepts)
    assert packed["Content-Encoding"] == "gzip"
    assert len(packed.content) < len(plain.content)
    assert json.loads(gzip.decompress(packed.content))["id"] == job.pk
    again = api.get(address, HTTP_IF_NONE_MATCH=packed["ETag"], **accepts)
    assert (packed["ETag"], again.status_code) == (f"W/{plain['ETag']}", 304)
    changed = api.patch(address, {"priority": "low"}, format="json", HTTP_IF_MATCH=packed["ETag"])
    assert changed.status_code == 200
    small = api.get(f"{address}?fields=state", **accepts)
    assert len(small.content) < LEAST_BYTES
    unwanted = api.get(address, HTTP_ACCEPT_ENCODING="gzip;q=0, identity")
    for answer in (plain, small, unwanted, browser.get(address, **accepts)):
        assert "Content-Encoding" not in answer
