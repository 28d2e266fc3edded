"""Headers for programs: the release, the limits, and what pages of other origins may do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from rest_framework.settings import api_settings
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from portal.accounts.models import Scope, User
from portal.api.cluster.version import MINIMUM_CLIENT
from portal.api.jobs.tags import tag_of
from tests.harness import world
from tests.portal.api.test_waiting import WAITS, Kept
from tests.portal.conftest import token_client
from trainer import __version__

LEFT = re.compile(r'"(\w+)";r=(\d+);t=(\d+)')


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_rates(**of_scope: str) -> None:
        rates = {**api_settings.DEFAULT_THROTTLE_RATES, **of_scope}
        monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", rates)

    return set_rates


def left(answer: Any) -> dict[str, int]:
    return {name: int(requests) for name, requests, _ in LEFT.findall(answer["RateLimit"])}


@pytest.mark.parametrize("address", ["/api/me/", "/api/nothing/", "/api/version/", "/oauth/token/"])
def test_every_answer_tells_the_release(db: None, address: str) -> None:
    for client in (Client(), Client(headers={"Authorization": "Bearer ft-wrong"})):
        assert client.get(address)["Foretune-Version"] == __version__
    assert "Foretune-Version" not in client.get("/healthz")


def test_a_client_learns_what_the_portal_can_do_before_it_signs_in(db: None) -> None:
    told = Client(headers={"Authorization": "Bearer ft-wrong"}).get("/api/version/").json()
    assert (told["version"], told["api"], told["minimum_client"]) == (__version__, 1, MINIMUM_CLIENT)
    assert "device_sign_in" in told["features"]
    assert not {"mcp", "webhooks"} & set(told["features"]), "what is not there"


def test_each_answer_to_a_token_tells_its_limits(person: User, rates: Any) -> None:
    rates(user="5/min", token="3/min")
    first, second = token_client(person), token_client(person, Scope.READ)
    answer = first.get("/api/me/")
    assert answer["RateLimit-Policy"] == '"person";q=5;w=60, "token";q=3;w=60'
    assert left(answer) == {"person": 4, "token": 2}
    refused = second.post("/api/teams/", {}, format="json")
    assert (refused.status_code, left(refused)) == (403, {"person": 3, "token": 2})
    assert left(first.get("/api/jobs/none/")) == {"person": 2, "token": 1}
    assert left(first.get("/api/me/?x=1")) == {"person": 1, "token": 0}
    over = first.get("/api/me/")
    assert over.status_code == 429
    assert left(over) == {"person": 0, "token": 0}
    assert 0 < int(over["Retry-After"]) <= 60
    assert second.get("/api/me/").status_code == 429, "the person has spent theirs"
    assert "RateLimit" not in Client().get("/api/me/")


def test_a_wait_and_what_has_not_changed_cost_a_tenth(api: APIClient, person: User, rates: Any) -> None:
    rates(user="4/min", token="4/min")
    job = world.job(person)
    address, kept = f"/api/jobs/{job.pk}/", Kept(api)
    known = {"If-None-Match": tag_of(job)}
    for query in ("", "?wait_s=1"):
        answers = [api.get(address + query, headers=known) for _ in range(5)]
        assert {(answer.status_code, left(answer)["token"]) for answer in answers} == {(304, 3)}
    waits = [kept.get(address, wait_s=60) for _ in range(5)]
    assert {(answer.status_code, left(answer)["token"]) for answer in waits} == {(WAITS, 2)}
    at_once = api.get(f"{address}?wait_s=1")
    assert (at_once.status_code, left(at_once)["token"]) == (200, 1), "it has waited for nothing"
    assert left(api.get("/api/me/?wait_s=1"))["token"] == 0, "nor has a refusal"
    assert api.get(address, headers=known).status_code == 429


def test_a_page_of_another_origin_asks_with_a_token_alone(person: User, settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://notebooks.example"]
    plain = token_client(person).authorization
    origin = {"Origin": "https://notebooks.example"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "idempotency-key"}
    preflight = Client().options("/api/jobs/", headers={**origin, **asks})
    assert preflight.status_code == 200
    assert preflight["Access-Control-Allow-Origin"] == "https://notebooks.example"
    assert {"authorization", "idempotency-key"} <= set(preflight["Access-Control-Allow-Headers"].split(", "))
    answer = Client().get("/api/me/", headers={**origin, "Authorization": plain})
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (200, "https://notebooks.example")
    exposed = set(answer["Access-Control-Expose-Headers"].split(", "))
    assert {"ETag", "Location", "Retry-After", "X-Request-ID", "RateLimit"} <= exposed
    assert "Access-Control-Allow-Credentials" not in answer
    refused = Client().get("/api/me/", headers=origin)
    assert (refused.status_code, refused["Access-Control-Allow-Origin"]) == (401, "https://notebooks.example")
    for other in ("https://elsewhere.example", "http://notebooks.example", "null"):
        assert "Access-Control-Allow-Origin" not in Client().get("/api/me/", headers={"Origin": other})
    assert "Access-Control-Allow-Origin" not in Client().get("/login/", headers=origin)


def test_no_origin_may_ask_unless_an_administrator_names_it(db: None) -> None:
    answer = Client().get("/api/me/", headers={"Origin": "https://a.example"})
    assert "Access-Control-Allow-Origin" not in answer
