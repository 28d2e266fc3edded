"""Retries of clients that count them: one intent makes one object, at once or later."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import F
from rest_framework.test import APIClient

from portal.accounts.models import User
from scheduler.models import DatasetFile, IdempotencyKey, Job, Upload, UploadPart
from scheduler.services.jobs import verbs
from tests.harness import world
from tests.harness.threads import at_once
from tests.portal.conftest import Program, token_client

pytestmark = pytest.mark.django_db(transaction=True)
JOBS = "/v1/fine_tuning/jobs"


@pytest.fixture
def person() -> User:
    return world.user("ada")


@pytest.fixture
def client(person: User) -> Program:
    return token_client(person)


@pytest.fixture
def job_body(person: User) -> dict[str, Any]:
    return {"model": "builtin/tiny-llama", "training_file": world.data_file(person).pk}


def post(of: Program, body: Any, retry: int, address: str = JOBS, **headers: str) -> Any:
    """As another connection of the same program would send it."""
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=of.authorization)
    counted = {"x-stainless-retry-count": str(retry), **headers}
    kind = "multipart" if any(hasattr(value, "read") for value in body.values()) else "json"
    return client.post(address, body, format=kind, headers=counted)


def made(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    return str(answer.json()["id"])


def test_a_retry_finds_the_first_job_and_a_second_intent_makes_a_second(
    client: Program, job_body: dict[str, Any], person: User
) -> None:
    first = made(post(client, job_body, 0))
    assert made(post(client, job_body, 1)) == first
    assert made(post(client, job_body, 2)) == first
    second = made(post(client, job_body, 0))
    assert second != first
    assert made(post(client, job_body, 1)) == second
    other_body = {**job_body, "suffix": "other"}
    assert made(post(client, other_body, 1)) not in (first, second)  # its first request never came
    assert made(post(token_client(person), job_body, 1)) not in (first, second)  # another program
    assert Job.objects.count() == 4


def test_a_retry_after_the_time_of_any_client_is_a_new_intent(
    client: Program, job_body: dict[str, Any]
) -> None:
    first = made(post(client, job_body, 0))
    for minutes, timeout, finds in (
        (9, "60", True),
        (3, "60", False),
        (0, "600", True),
        (0, "9" * 400, True),
    ):
        IdempotencyKey.objects.update(created_at=F("created_at") - timedelta(minutes=minutes))
        found = made(post(client, job_body, 1, **{"x-stainless-read-timeout": timeout}))
        if not finds:
            assert found != first
            first = found
        assert found == first


def test_a_key_of_the_program_itself_goes_first(client: Program, job_body: dict[str, Any]) -> None:
    key = {"Idempotency-Key": "k"}
    first = made(post(client, job_body, 0, **key))
    assert made(post(client, job_body, 0, **key)) == first
    refused = post(client, {**job_body, "suffix": "x"}, 0, **key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "key_reused")


def test_a_retry_that_overtakes_its_first_request_makes_the_one_job(
    client: Program, job_body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client gives up waiting and asks again while the portal is still at it."""
    begun, go_on, prepare = threading.Event(), threading.Event(), verbs.prepare

    def slow(*args: Any, **values: Any) -> Any:
        if not begun.is_set():
            begun.set()
            go_on.wait(30)
        return prepare(*args, **values)

    monkeypatch.setattr(verbs, "prepare", slow)

    def retry() -> Any:
        begun.wait(30)
        try:
            return post(client, job_body, 1)
        finally:
            go_on.set()

    first, second = at_once(lambda: post(client, job_body, 0), retry)
    assert made(first) == made(second)
    assert Job.objects.count() == 1


def test_twins_at_once_make_one_job(client: Program, job_body: dict[str, Any]) -> None:
    number = 30 if connection.vendor == "postgresql" else 8
    answers = at_once(*[lambda: post(client, job_body, 1)] * number)
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert all(answer["Retry-After"] for answer in answers if answer.status_code == 409)
    assert Job.objects.count() == 1


def test_files_uploads_and_parts_are_made_once_as_well(client: Program) -> None:
    row = world.training_lines(3)

    def send(retry: int) -> list[str]:
        file = SimpleUploadedFile("rows.jsonl", row)
        stored = made(post(client, {"purpose": "fine-tune", "file": file}, retry, "/v1/files"))
        begin = {"purpose": "fine-tune", "bytes": len(row), "filename": "b", "mime_type": "text/jsonl"}
        upload = made(post(client, begin, retry, "/v1/uploads"))
        data = {"data": SimpleUploadedFile("upload", row)}
        part = made(post(client, data, retry, f"/v1/uploads/{upload}/parts"))
        whole = post(client, {"part_ids": [part]}, retry, f"/v1/uploads/{upload}/complete").json()
        return [stored, upload, part, whole["file"]["id"]]

    assert send(0) == send(1)
    assert [model.objects.count() for model in (DatasetFile, Upload, UploadPart)] == [2, 1, 1]
