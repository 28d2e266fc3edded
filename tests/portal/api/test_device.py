"""Sign-in for programs: a code, a person who confirms it, a token, once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal import clock
from portal.accounts.device.protocol import GRANT_TYPE
from portal.accounts.models import ApiToken, AuditEntry, DeviceGrant, Membership, Team, User
from scheduler.services.lockouts import revoke_all

FORM = "application/x-www-form-urlencoded"


class Program:
    """A program that signs in, as RFC 8628 has it."""

    def __init__(self, **asks: str) -> None:
        self.client = APIClient()
        body = {"client_id": "foretune", "scope": "submit", "name": "laptop", **asks}
        self.asked = self.send("device-authorization", body)
        self.told = self.asked.json()

    def send(self, address: str, body: dict[str, str]) -> Any:
        return self.client.post(f"/oauth/{address}/", urlencode(body), content_type=FORM)

    def poll(self, **other: str) -> Any:
        code = {"grant_type": GRANT_TYPE, "device_code": self.told["device_code"], "client_id": "foretune"}
        return self.send("token", {**code, **other})

    def error(self, **other: str) -> str:
        answer = self.poll(**other)
        assert answer.status_code in (400, 401), answer.content
        assert answer.json()["error_description"]
        return str(answer.json()["error"])


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let seconds pass."""
    passed = [0.0]
    read = clock.read
    monkeypatch.setattr(clock, "read", lambda: read() + timedelta(seconds=passed[0]))

    def pass_s(seconds: float) -> datetime:
        passed[0] += seconds
        return clock.read()

    return pass_s


def confirm(browser: Client, program: Program, **chosen: str) -> Any:
    values = {"code": program.told["user_code"], "answer": "confirm", "name": "my laptop", "scope": "submit"}
    return browser.post("/device/", {**values, "days": "30", **chosen})


def test_a_program_gets_a_token_of_the_person_once(browser: Client, person: User, later: Any) -> None:
    program = Program()
    told = program.told
    assert program.asked.status_code == 200
    assert (told["expires_in"], told["interval"]) == (600, 5)
    assert told["verification_uri"] == "http://testserver/device/"
    assert program.error() == "authorization_pending"
    page = browser.get(told["verification_uri_complete"]).content.decode()
    assert told["user_code"] in page
    assert "foretune asks for a token" in page
    assert "127.0.0.1" in page
    assert not ApiToken.objects.exists(), "nothing before the person confirms"
    assert confirm(browser, program).status_code == 200
    later(5)
    got = program.poll()
    assert got.status_code == 200, got.content
    assert got["Cache-Control"] == "no-store"
    body = got.json()
    assert (body["token_type"], body["scope"]) == ("Bearer", "submit")
    assert 29 * 86400 < body["expires_in"] <= 30 * 86400
    me = APIClient().get("/api/me/", headers={"Authorization": f"Bearer {body['access_token']}"})
    assert me.json()["username"] == person.username
    token = ApiToken.objects.get()
    assert (token.name, token.owner, token.scope) == ("my laptop", person, "submit")
    later(5)
    assert program.error() == "invalid_grant", "handed out once"
    assert ApiToken.objects.count() == 1
    everything = str([list(rows.objects.values()) for rows in (DeviceGrant, ApiToken, AuditEntry)])
    assert told["device_code"] not in everything
    assert body["access_token"] not in everything
    assert list(AuditEntry.objects.values_list("action", flat=True)) == ["token created", "program confirmed"]
    assert "my laptop" in browser.get("/tokens/").content.decode()


def test_a_program_that_asks_too_often_is_slowed_down(db: None, later: Any) -> None:
    program = Program()
    assert program.error() == "authorization_pending"
    later(2)
    assert program.error() == "slow_down"
    later(6)
    assert program.error() == "slow_down", "ten seconds from now on"
    later(15)
    assert program.error() == "authorization_pending"


def test_a_code_ends_after_ten_minutes_for_both(browser: Client, later: Any) -> None:
    asked, confirmed = Program(), Program()
    confirm(browser, confirmed)
    later(601)
    assert "No program is waiting" in browser.get(asked.told["verification_uri_complete"]).content.decode()
    assert confirm(browser, asked).status_code == 400
    assert {asked.error(), confirmed.error()} == {"expired_token"}
    assert not ApiToken.objects.exists()


def test_five_wrong_codes_end_the_right_one_too(browser: Client) -> None:
    program = Program()
    for _ in range(4):
        assert browser.post("/device/", {"code": "BBBB-BBBB"}).status_code == 400
    assert browser.get(program.told["verification_uri_complete"]).status_code == 200
    assert "Too many wrong codes" in browser.get("/device/?code=CCCC-CCCC").content.decode()
    assert "Too many wrong codes" in confirm(browser, program).content.decode()
    assert program.error() == "authorization_pending"


def test_what_nobody_has_fetched_yet_ends_with_all_tokens(browser: Client, person: User, later: Any) -> None:
    fetched, waiting = Program(), Program()
    for program in (fetched, waiting):
        assert confirm(browser, program).status_code == 200
    later(5)
    assert fetched.poll().status_code == 200
    revoke_all(user=person, actor=person, now=clock.read())
    assert waiting.error() == "access_denied"
    assert not ApiToken.objects.filter(revoked_at=None).exists()


def test_a_denied_program_is_told_so(browser: Client) -> None:
    program = Program()
    assert "gets no token" in confirm(browser, program, answer="deny").content.decode()
    assert program.error() == "access_denied"
    assert confirm(browser, program).status_code == 400


def test_the_person_chooses_what_the_program_may(browser: Client, person: User) -> None:
    team = Team.objects.create(name="Linguists")
    foreign = Team.objects.create(name="Poets")
    Membership.objects.create(team=team, user=person)
    program = Program(scope="write", name="")
    page = browser.get(program.told["verification_uri_complete"]).content.decode()
    assert 'value="write" selected' in page
    assert "Poets" not in page
    for field, value in [("scope", "admin"), ("team", str(foreign.pk)), ("days", "7000"), ("name", "")]:
        refused = confirm(browser, program, **{field: value})
        assert (refused.status_code, list(refused.context["form"].errors)) == (400, [field])
    confirm(browser, program, scope="read", team=str(team.pk), days="")
    body = program.poll().json()
    assert (body["scope"], body.get("expires_in")) == ("read", None)
    assert ApiToken.objects.get().team == team


def test_a_person_who_left_confirms_nothing_any_more(browser: Client, person: User) -> None:
    left_team, left = Program(), Program()
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person)
    confirm(browser, left_team, team=str(team.pk))
    Membership.objects.all().delete()
    assert left_team.error() == "access_denied"
    confirm(browser, left)
    User.objects.update(is_active=False)
    assert left.error() == "access_denied"
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({"device_code": "made-up"}, "invalid_grant"),
        ({"client_id": "another"}, "invalid_grant"),
        ({"client_id": ""}, "invalid_client"),
        ({"device_code": ""}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
def test_what_is_no_question_of_this_program_is_refused(db: None, other: dict[str, str], error: str) -> None:
    program = Program()
    assert program.error(**other) == error
    assert program.error() == "authorization_pending"


@pytest.mark.parametrize(
    "asks",
    [
        {"client_id": "two words"},
        {"client_id": ""},
        {"scope": "all"},
        {"name": "a\x00b"},
        {"name": "x" * 101},
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(db: None, asks: dict[str, str]) -> None:
    program = Program(**asks)
    assert program.asked.status_code in (400, 401)
    assert {"error", "error_description"} <= program.told.keys()
    assert not DeviceGrant.objects.exists()


def test_a_person_signs_in_first_and_comes_back(db: None) -> None:
    program = Program()
    to_sign_in = Client().get(program.told["verification_uri_complete"])
    assert to_sign_in["Location"].startswith("/login/?next=/device/%3Fcode%3D")
