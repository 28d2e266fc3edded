"""Health, metrics, request ids, errors without traces, and secrecy.

Secrets stay secret.
"""

from __future__ import annotations

import functools
import json
import logging
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.api.people import me
from portal.logs import JsonFormatter, mask
from portal.ops import health
from portal.serving import queued
from scheduler.loop.tick import tick
from tests.harness import world
from tests.portal.conftest import Program

CANARY = "ft-CANARYcanaryCANARYcanaryCANARYcanaryCANARYcan"


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz_names_what_is_missing(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "broker_works", lambda: "does not answer")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {
        "database": "ok",
        "broker": "does not answer",
        "scheduler": answer.json()["checks"]["scheduler"],
        "disk": answer.json()["checks"]["disk"],
    }


def test_readyz_is_ready_when_the_broker_answers_and_the_loop_looks(
    client: Client, db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "broker_works", lambda: "ok")
    assert client.get("/readyz").status_code == 503
    tick()
    assert client.get("/readyz").json()["status"] == "ready"


def test_a_broker_that_is_away_is_told_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    away = functools.partial(health.app.connection_for_write, "redis://127.0.0.1:1/0")
    monkeypatch.setattr(health.app, "connection_for_write", away)
    assert health.broker_works().startswith("does not answer (")


def test_metrics_count_the_cluster(client: Client, person: User) -> None:
    world.placed_job(world.fake_node(slots=3), owner=person, params={"number_gpus": 1})
    text = client.get("/metrics").content.decode()
    for line in ('foretune_jobs{state="assigned"} 1.0', "foretune_gpus 3.0", "foretune_gpus_free 2.0"):
        assert line in text
    assert "foretune_ticks_total 1.0" in text


@pytest.mark.parametrize("remote", [{"REMOTE_ADDR": "10.0.0.9"}, {"HTTP_X_FORWARDED_FOR": "10.0.0.9"}])
def test_metrics_are_not_for_passers_by(remote: dict[str, str], api: APIClient, admin_api: APIClient) -> None:
    assert api.get("/metrics", **remote).status_code == 403
    assert admin_api.get("/metrics", **remote).status_code == 200


def test_every_answer_carries_a_request_id(client: Client, db: None) -> None:
    assert client.get("/healthz", headers={"X-Request-ID": "abc-1"})["X-Request-ID"] == "abc-1"
    for path in ("/healthz", "/api/jobs/", "/nowhere/", "/login/"):
        assert len(client.get(path, headers={"X-Request-ID": "bad\tid"})["X-Request-ID"]) == 32


def test_what_is_behind_the_sign_in_is_stored_nowhere(
    client: Client, api: APIClient, person: User, settings: Any
) -> None:
    client.force_login(person)
    for path in ("/", "/jobs/", "/tokens/", "/nowhere/", "/metrics", "/healthz"):
        assert client.get(path)["Cache-Control"] == "private, no-store", path
    for path in ("/api/me/", "/api/nowhere/"):
        assert api.get(path)["Cache-Control"] == "private, no-store", path
    assert "max-age" in client.get("/static/js/charts.js")["Cache-Control"]


def test_a_mistake_of_ours_is_500_without_a_trace(
    api: APIClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(me, "own_tokens", lambda user: 1 / 0)
    api.raise_request_exception = False
    answer = api.get("/api/tokens/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert "ZeroDivision" not in answer.content.decode()
    assert "ZeroDivision" in caplog.text


def test_a_database_that_is_away_is_503_with_retry_after(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(user: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(me, "own_tokens", away)
    api.raise_request_exception = False
    answer = api.get("/api/tokens/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert answer["Retry-After"] == "5"


def test_what_waited_too_long_for_a_thread_is_not_started(api: APIClient, client: Client) -> None:
    mark = queued.waited_s.set(queued.LONGEST_S + 0.1)
    try:
        answers = [api.get("/api/me/"), client.get("/"), client.post("/agent/v1/sync")]
    finally:
        queued.waited_s.reset(mark)
    assert [(answer.status_code, answer["Retry-After"]) for answer in answers] == [(503, "5")] * 3
    assert api.get("/api/me/").status_code == 200


def test_a_missing_page_while_the_database_is_away_is_503(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its navigation asks the database who reads, and whether the data are simulated."""

    def away(*_: object) -> bool:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr("portal.ops.demo.marker.is_demo", away)
    client.raise_request_exception = False
    answer = client.get("/nowhere/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert b"The portal is busy" in answer.content


def test_pages_that_do_not_exist_are_explained(client: Client, db: None) -> None:
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert b"Page not found" in answer.content
    assert client.post("/agent/v1/none").json()["error"]["code"] == "not_found"


def test_logs_are_json_with_ids_and_without_secrets() -> None:
    record = logging.makeLogRecord(
        {
            "msg": "started with %s",
            "args": (f"Bearer {CANARY}",),
            "levelname": "INFO",
            "job": "ftjob-1",
            "claim": UUID(int=1),
        }
    )
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["job"], line["claim"]) == ("info", "ftjob-1", str(UUID(int=1)))
    assert CANARY not in str(line)


@pytest.mark.parametrize(
    "text",
    [CANARY, f"Authorization: Bearer {CANARY}", f"--join fjoin-{CANARY[3:]}", "redis://u:CANARYpass@host/0"],
)
def test_secrets_are_masked(text: str) -> None:
    assert "CANARY" not in mask(text)


@pytest.mark.parametrize("text", ["ftjob-0193c2a7e4b1aabbccddeeff", "file-0193c2a7e4b1aabbccddeeff", "plain"])
def test_ids_are_not_masked(text: str) -> None:
    assert mask(text) == text


def test_a_token_never_comes_back(api: Program, person: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = api.authorization.split()[1]
    world.job(person)
    for path in ("me/", "tokens/", "jobs/", "files/", "nodes/", "schema/", "nothing/"):
        assert secret not in api.get(f"/api/{path}").content.decode()
    wrong = api.post("/api/tokens/", {"name": secret, "expires_at": secret}, format="json")
    assert wrong.status_code == 400
    formatter = JsonFormatter()
    assert secret not in "".join(formatter.format(record) for record in caplog.records)


def test_the_api_page_loads_nothing_from_elsewhere(client: Client, db: None) -> None:
    page = client.get("/api/docs/").content.decode()
    assert "swagger-ui" in page
    assert "https://" not in page
    assert client.get("/api/docs/?script=").status_code == 200


def test_lists_of_knowledge_are_shown(api: APIClient) -> None:
    assert "builtin/tiny-llama" in [model["id"] for model in api.get("/api/models/").json()["data"]]
    assert api.get("/api/executions/", {"limit": 1}).json()["total"] == 0
    assert api.get("/api/predictors/").json()["data"] == []


@pytest.mark.parametrize(
    "path",
    [
        "bootstrap/css/bootstrap.min.css",
        "vendor/plotly-basic.min.js",
        "django_htmx/htmx-2.min.js",
        "js/charts.js",
    ],
)
@pytest.mark.parametrize("debug", [False, True])  # from a list made at the start, or looked up each time
def test_files_of_packages_and_vendored_ones_are_served_without_collectstatic(
    path: str, debug: bool, client: Client, db: None, settings: Any
) -> None:
    settings.WHITENOISE_AUTOREFRESH = debug
    answer = client.get(f"/static/{path}")
    assert answer.status_code == 200
    assert sum(map(len, answer)) > 500
    assert client.get("/static/bootstrap/js/bootstrap.min.js").status_code == 404
