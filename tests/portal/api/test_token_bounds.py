"""What a token is bound to: one team, its owner's own jobs, addresses; and its text."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.accounts import token_text
from portal.accounts.models import ApiToken, Membership, Role, Scope, Team, User
from portal.accounts.token_bounds import clean_networks, is_inside
from portal.clock import database_now
from scheduler.models import DatasetFile, Job
from scheduler.services.files.uploads import store_file
from scheduler.services.jobs.arrays import submit_array
from tests.harness import world
from tests.portal.conftest import Program, token_client


def test_a_scanner_finds_a_token_and_a_mistyped_one_costs_no_query(person: User) -> None:
    plain = token_client(person).authorization.removeprefix("Bearer ")
    assert re.fullmatch(r"ft-[0-9A-Za-z]{49}", plain)
    assert len({token_text.new_text() for _ in range(50)}) == 50
    swapped = plain[:10] + plain[11] + plain[10] + plain[12:]
    mistyped = [plain[:-1] + ("a" if plain[-1] != "a" else "b"), plain[:-1], plain + "0", plain.upper()]
    for wrong in {*mistyped, swapped} - {plain}:
        with CaptureQueriesContext(connection) as queries:
            assert Program(f"Bearer {wrong}").get("/api/me/").status_code == 401
        assert not [query for query in queries if "accounts_apitoken" in query["sql"]], wrong


@dataclass
class Lab:
    """A person who leads one team and is in another; a colleague's objects, and files of either team."""

    lead: User
    led: Team
    other: Team
    colleagues_job: Job
    own_job: Job
    others_job: Job
    colleagues_file: DatasetFile


@pytest.fixture
def lab(person: User) -> Lab:
    colleague = world.user("bob")
    led, other = Team.objects.create(name="led"), Team.objects.create(name="other")
    Membership.objects.create(team=led, user=person, role=Role.LEAD)
    Membership.objects.create(team=led, user=colleague)
    Membership.objects.create(team=other, user=person)
    Membership.objects.create(team=other, user=colleague)
    file = store_file(
        owner=colleague, stream=io.BytesIO(world.training_lines()), filename="b.jsonl", now=database_now()
    )
    DatasetFile.objects.filter(pk=file.pk).update(team=led)
    jobs = [world.job(colleague, team=led), world.job(person), world.job(colleague, team=other)]
    return Lab(person, led, other, *jobs, file)


def test_a_token_of_a_team_ends_with_the_membership_and_what_it_began_stays_the_teams(lab: Lab) -> None:
    bound, wide, rows = token_client(lab.lead, team=lab.other), token_client(lab.lead), world.training_lines()
    upload = bound.post("/api/uploads/", {"filename": "a.jsonl", "bytes": len(rows)}, format="json").json()
    address = f"/api/uploads/{upload['id']}/"
    part = bound.post(f"{address}parts/", {"data": io.BytesIO(rows)}, format="multipart").json()
    done = wide.post(f"{address}complete/", {"part_ids": [part["id"]]}, format="json").json()
    assert done["file"]["team"]["name"] == "other"
    Membership.objects.filter(team=lab.other, user=lab.lead).delete()
    for answer in (
        bound.get("/api/me/"),
        bound.post("/api/files/", {"file": io.BytesIO(rows)}, format="multipart"),
        bound.post("/v1/uploads", {"filename": "a", "bytes": 7, "purpose": "fine-tune"}, format="json"),
    ):
        assert (answer.status_code, b"has left" in answer.content) == (403, True)


def test_a_token_that_never_ends_to_speak_of_is_rotated(person: User) -> None:
    far = datetime.max.replace(microsecond=0, tzinfo=UTC)
    api = token_client(person, expires_at=far)
    ApiToken.objects.update(created_at=F("created_at") - timedelta(days=9))
    token = ApiToken.objects.get()
    answer = api.post(f"/api/tokens/tok-{token.pk}/rotate/")
    assert answer.status_code == 201, answer.content
    assert answer.json()["expires_at"].startswith("9999-12-31T")


def ids(api: APIClient, address: str) -> set[str]:
    return {row["id"] for row in api.get(address).json()["data"]}


def test_a_token_of_a_team_reaches_nothing_else(lab: Lab) -> None:
    api = token_client(lab.lead, team=lab.led)
    assert ids(api, "/api/jobs/") == {lab.colleagues_job.pk}
    assert {row["name"] for row in api.get("/api/teams/").json()["data"]} == {"led"}
    assert [team["name"] for team in api.get("/api/me/").json()["teams"]] == ["led"]
    for job in (lab.own_job, lab.others_job):
        assert api.get(f"/api/jobs/{job.pk}/").status_code == 404
        assert api.post(f"/api/jobs/{job.pk}/cancel/").status_code == 404
    assert ids(api, "/api/files/") == {lab.colleagues_file.pk}
    uploaded = api.post("/api/files/", {"file": io.BytesIO(world.training_lines())}, format="multipart")
    assert uploaded.status_code == 201, uploaded.content
    body = {"model": "builtin/tiny-llama", "training_file": uploaded.json()["id"]}
    made = api.post("/api/jobs/", body, format="json")
    assert made.status_code == 201, made.content
    assert Job.objects.get(pk=made.json()["id"]).team == lab.led
    refused = api.post("/api/jobs/", {**body, "team": "other"}, format="json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["team"])
    Membership.objects.filter(user=lab.lead, team=lab.led).delete()
    assert api.get("/api/jobs/").status_code == 403


def test_a_token_of_a_team_makes_no_administrator(lab: Lab) -> None:
    User.objects.filter(pk=lab.lead.pk).update(is_staff=True)
    lead = User.objects.get(pk=lab.lead.pk)
    api = token_client(lead, Scope.ADMIN, team=lab.led)
    assert api.get("/api/users/").status_code == 403
    assert ids(api, "/api/jobs/") == {lab.colleagues_job.pk}
    assert token_client(lead, Scope.ADMIN).get("/api/users/").status_code == 200


def test_a_token_that_submits_changes_what_is_its_own(lab: Lab) -> None:
    api = token_client(lab.lead, Scope.SUBMIT)
    body = {"model": "builtin/tiny-llama", "training_file": lab.colleagues_file.pk}
    assert api.post("/api/jobs/", body, format="json").status_code == 201, "a team's file may be trained on"
    assert api.get(f"/api/jobs/{lab.colleagues_job.pk}/").status_code == 200
    array = submit_array(
        owner=lab.colleagues_job.owner, team=lab.led, model="builtin/tiny-llama", now=database_now(),
        training_file=lab.colleagues_file, values=[{"lora_r": 4}, {"lora_r": 8}],
    )  # fmt: skip
    theirs = [
        *(("post", f"/api/jobs/{lab.colleagues_job.pk}/{verb}/") for verb in ("cancel", "pause")),
        ("post", f"/api/arrays/{array.pk}/cancel/"),
        ("delete", f"/api/files/{lab.colleagues_file.pk}/"),
    ]
    for method, address in theirs:
        refused = getattr(api, method)(address)
        assert refused.status_code == 403, f"{address}: {refused.content}"
    assert {job.state for job in Job.objects.exclude(owner=lab.lead)} == {"queued"}
    assert api.post(f"/api/jobs/{lab.own_job.pk}/cancel/").status_code == 200
    assert api.post("/api/tokens/", {"name": "x", "scope": "read"}, format="json").status_code == 403
    assert api.patch(f"/api/teams/team-{lab.led.pk}/", {}, format="json").status_code == 403
    wider = token_client(lab.lead, Scope.WRITE)
    assert wider.post(f"/api/jobs/{lab.colleagues_job.pk}/cancel/").status_code == 200


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("10.1.2.3", True), ("10.2.0.1", False), ("::ffff:10.1.9.9", True), ("2001:db8::7", True),
        ("2001:db9::7", False), ("192.0.2.9", True), ("192.0.2.10", False), ("", False),
    ],
)  # fmt: skip
def test_a_token_works_from_its_addresses_alone(person: User, address: str, inside: bool) -> None:
    networks = clean_networks(["10.1.0.0/16", "2001:db8::/48", "192.0.2.9"])
    api = token_client(person, networks=networks)
    answer = api.get("/api/me/", REMOTE_ADDR=address)
    assert answer.status_code == (200 if inside else 403), answer.content
    assert is_inside(address, ())
    within_ipv6 = token_client(person, networks=clean_networks(["::ffff:10.1.0.0/112"]))
    in_short = inside and "10.1." in address
    assert within_ipv6.get("/api/me/", REMOTE_ADDR=address).status_code == (200 if in_short else 403)


def test_the_last_use_is_told(person: User) -> None:
    token_client(person).get("/api/jobs/?limit=2", REMOTE_ADDR="192.0.2.9")
    token = ApiToken.objects.get()
    assert (token.last_used_for, token.last_used_from) == ("GET /api/jobs/", "192.0.2.9")


def made_over_rest(api: APIClient, **values: object) -> Any:
    return api.post("/api/tokens/", {"name": "ci", "scope": "read", **values}, format="json")


def test_bounds_are_asked_for_and_told_over_rest(lab: Lab, settings: Any) -> None:
    api = token_client(lab.lead)
    told = made_over_rest(api, team="led", networks=["10.1.2.3/16"]).json()
    assert told["team"]["name"] == "led"
    assert told["networks"] == ["10.1.0.0/16"]
    days = (ApiToken.objects.latest("pk").expires_at - database_now()).days
    assert days in (89, 90), "unless an end is named"
    assert made_over_rest(api, expires_at=None).json()["expires_at"] is None
    for field, value in [
        ("networks", ["10.1"]),
        ("team", "nobody's"),
        ("expires_at", "2020-01-01T00:00:00Z"),
    ]:
        refused = made_over_rest(api, **{field: value})
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])
    settings.TOKEN_MAX_DAYS = 30
    refused = made_over_rest(api, expires_at=None)
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["expires_at"])
    assert made_over_rest(api).status_code == 201


def test_a_bound_token_makes_none_that_is_wider(lab: Lab) -> None:
    bound = token_client(lab.lead, team=lab.led, networks=["127.0.0.0/8"])
    assert made_over_rest(bound, team="led", networks=["127.0.0.1"]).status_code == 201
    wider = [
        {"networks": ["127.0.0.1"]},
        {"team": "led"},
        {"team": "led", "networks": ["0.0.0.0/0", "127.0.0.1"]},
    ]
    for values in wider:
        assert made_over_rest(bound, **values).status_code == 403, values
