"""Creations under one key, at once or broken off.

They make one object, and the key stays free where none was made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, connections
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.errors import Conflict
from scheduler.models import DatasetFile, IdempotencyKey, Job
from scheduler.services import idempotency
from scheduler.services.idempotency import Creation, once
from scheduler.services.jobs import verbs
from scheduler.services.jobs.verbs import submit_job
from tests.harness import world
from tests.harness.threads import at_once
from tests.portal.conftest import Program, token_client

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def person() -> User:
    return world.user()


@pytest.fixture
def submit(person: User) -> Callable[..., Any]:
    """Submit the same job under the same key, each time as another client."""
    api = token_client(person)
    body = {"model": "builtin/tiny-llama", "training_file": world.data_file(person).pk}

    def post(**more: str) -> Any:
        client = APIClient(raise_request_exception=False)
        client.credentials(HTTP_AUTHORIZATION=api.authorization)
        return client.post("/api/jobs/", {**body, **more}, format="json", headers={"Idempotency-Key": "k"})

    return post


def test_fifty_twins_at_once_make_one_job(submit: Callable[..., Any]) -> None:
    """I1, I10"""
    answers = at_once(*[submit] * (50 if connection.vendor == "postgresql" else 12))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert all(answer["Retry-After"] for answer in answers if answer.status_code == 409)
    made = Job.objects.get()
    assert {answer.json()["id"] for answer in answers if answer.status_code == 201} == {made.pk}
    assert submit().json()["id"] == made.pk
    assert submit(name="other").status_code == 422


def test_a_twin_waits_a_moment_only_and_is_told_to_ask_again(
    submit: Callable[..., Any], person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I10"""
    monkeypatch.setattr(idempotency, "TWIN_WAITS_MS", 100)
    begun, go_on, noted = threading.Event(), threading.Event(), verbs.record_submissions

    def slow(**values: Any) -> None:
        noted(**values)
        begun.set()
        go_on.wait(30)

    monkeypatch.setattr(verbs, "record_submissions", slow)

    def twin() -> Any:
        begun.wait(30)
        try:
            return submit()
        finally:
            go_on.set()

    first, second = at_once(submit, twin)
    assert (first.status_code, second.status_code) == (201, 409)
    assert second["Retry-After"] == "1"
    assert second.json()["error"]["code"] == "key_in_use"
    assert submit().json()["id"] == first.json()["id"]


def violate_a_constraint(_: pytest.MonkeyPatch) -> None:
    raise IntegrityError("one too many")


def lose_the_database(patch: pytest.MonkeyPatch) -> None:
    """Break the connection, as a restart of the database does.

    A new connection cannot be had for a moment.
    """

    def refuse() -> None:
        raise OperationalError("the database system is starting up")

    connections["default"].close()
    patch.setattr(connections["default"], "connect", refuse)
    Job.objects.count()


@pytest.mark.parametrize("how", [violate_a_constraint, lose_the_database])
def test_a_creation_that_breaks_leaves_its_key_free_at_once(
    submit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, how: Callable[[pytest.MonkeyPatch], None]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(verbs, "record_submissions", lambda **_: how(broken))
        assert submit().status_code in (500, 503)
    assert not Job.objects.exists()
    assert not IdempotencyKey.objects.exists()
    assert submit().status_code == 201


def test_a_twin_that_finds_what_it_would_make_gets_that_object(person: User) -> None:
    """A twin whose check finds the object already made gets that object.

    Some creations check before their transaction whether another object stands in the way.
    """
    file = world.data_file(person)

    def make(creation: Creation) -> Job:
        return submit_job(
            owner=person,
            model="builtin/tiny-llama",
            training_file=file,
            now=database_now(),
            creation=creation,
        )

    def refuse(_: Creation) -> Job:
        ask(create=make)
        raise Conflict("There is one already.")

    ask = partial(
        once, owner=person, route="jobs", key="k", body_digest="d", now=database_now(),
        load=lambda pk: Job.objects.get(pk=pk),
    )  # fmt: skip
    assert ask(create=refuse) == (Job.objects.get(), False)


def test_what_a_key_made_and_is_gone_or_anothers_to_see_is_told_as_gone(
    person: User, api: Program, admin_api: Program, data_file: DatasetFile
) -> None:
    team = Team.objects.create(name="vision")
    Membership.objects.create(team=team, user=person)
    world.user("eve")
    bound = token_client(person, team=team)
    DatasetFile.objects.update(team=team)
    file = {"model": "builtin/tiny-llama", "training_file": data_file.pk}
    key, soon = {"Idempotency-Key": "k"}, (database_now() + timedelta(days=1)).isoformat()
    token = {"name": "x", "scope": "read", "team": "vision", "expires_at": soon}
    for made_by, asks_again, path, sent, gone in (
        (admin_api, admin_api, "teams/", {"name": "short"}, "teams/short/"),
        (admin_api, admin_api, "teams/vision/members/", {"user": "eve"}, "teams/vision/members/eve/"),
        (api, bound, "jobs/", file, ""),
        (api, bound, "arrays/", {**file, "values": [{"seed": 1}, {"seed": 2}]}, ""),
        (api, bound, "uploads/", {"filename": "a", "bytes": 7}, ""),
        (api, bound, "tokens/", {**token, "team": None}, ""),
    ):
        made = made_by.post(f"/api/{path}", sent, format="json", headers=key)
        assert made.status_code == 201, made.content
        if gone:
            assert made_by.delete(f"/api/{gone}").status_code == 204
        again = asks_again.post(f"/api/{path}", sent, format="json", headers=key)
        assert again.status_code == 404, path
        assert "not here any more" in again.json()["error"]["message"]
