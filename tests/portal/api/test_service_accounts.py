"""Service accounts, their tokens, and rotation, over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, AuditEntry, Membership, Role, Scope, Team, User
from portal.accounts.services import create_token
from portal.clock import database_now
from tests.harness import world
from tests.portal.conftest import Program, token_client


@pytest.fixture
def team(person: User) -> Team:
    """One that `person` leads."""
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person, role=Role.LEAD)
    return team


def post(api: APIClient, path: str, body: object = None, **headers: str) -> Any:
    return api.post(f"/api/{path}", {} if body is None else body, format="json", headers=headers)


def program(plain: str) -> Program:
    return Program(f"Bearer {plain}")


def refused(answer: Any) -> tuple[int, list[str]]:
    return answer.status_code, list(answer.json()["error"]["fields"])


def test_a_lead_runs_one_for_their_team_without_a_page(api: Program, team: Team) -> None:
    made = post(
        api, "service-accounts/", {"username": "ci-bot", "team": "Linguists"}, **{"Idempotency-Key": "1"}
    )
    assert made.status_code == 201, made.content
    account = made.json()
    assert account["team"] == {"id": f"team-{team.pk}", "name": "Linguists"}
    assert made["Location"] == f"/api/service-accounts/{account['id']}/"
    assert api.get(made["Location"]).json() == account
    again = post(
        api, "service-accounts/", {"username": "ci-bot", "team": "Linguists"}, **{"Idempotency-Key": "1"}
    )
    assert (again["Idempotency-Replayed"], again.json()) == ("true", account)
    assert [one["id"] for one in api.get("/api/service-accounts/?username=CI").json()["data"]] == [
        account["id"]
    ]
    tokens = f"users/{account['id']}/tokens/"
    token = post(api, tokens, {"name": "pipeline", "scope": "submit"})
    assert token.status_code == 201, token.content
    assert token["Location"] == f"/api/{tokens}{token.json()['id']}/"
    told = {name: value for name, value in token.json().items() if name != "token"}
    assert api.get(token["Location"]).json() == told
    bot = program(token.json()["token"])
    assert bot.get("/api/me/").json()["username"] == "ci-bot"
    listed = api.get(f"/api/{tokens}").json()["data"]
    assert [one["id"] for one in listed] == [told["id"]]
    rotated = post(api, f"{tokens}{told['id']}/rotate/")
    assert rotated["Location"] == f"/api/{tokens}{rotated.json()['id']}/"
    assert program(rotated.json()["token"]).get("/api/me/").status_code == 200
    assert bot.get("/api/me/").status_code == 200, "for a day"
    assert api.delete(token["Location"]).status_code == 204
    assert bot.get("/api/me/").status_code == 401
    assert api.delete(f"/api/{tokens}").status_code == 204
    assert program(rotated.json()["token"]).get("/api/me/").status_code == 401
    assert api.delete(made["Location"]).status_code == 204
    assert api.get(made["Location"]).json()["active"] is False
    assert post(api, f"service-accounts/{account['id']}/activate/").json()["active"] is True
    acts = AuditEntry.objects.filter(actor_name="ada").order_by("pk").values_list("action", flat=True)
    assert list(acts)[1:] == [
        "service account created", "token created", "token created", "token revoked", "tokens revoked",
        "user locked out", "user let in",
    ]  # fmt: skip


def test_who_does_not_run_it_finds_nothing(api: Program, team: Team, stranger: Program) -> None:
    account = post(api, "service-accounts/", {"username": "ci-bot", "team": "Linguists"}).json()
    post(api, f"users/{account['id']}/tokens/", {"name": "pipeline"})
    token = ApiToken.objects.latest("pk")
    theirs = Team.objects.create(name="Poets")
    Membership.objects.create(team=theirs, user=User.objects.get(username="eve"), role=Role.LEAD)
    Membership.objects.create(team=theirs, user=User.objects.get(username="ada"))
    member = world.user("bob")
    Membership.objects.create(team=team, user=member)
    below = token_client(world.admin(), Scope.WRITE)
    of_another_team = token_client(User.objects.get(username="ada"), team=theirs)
    for other in (stranger, token_client(member), below, of_another_team):
        assert other.get("/api/service-accounts/").json()["total"] == 0
        assert other.get(f"/api/service-accounts/{account['id']}/").status_code == 404
        assert other.delete(f"/api/service-accounts/{account['id']}/").status_code == 404
        tokens = f"users/{account['id']}/tokens/"
        assert other.get(f"/api/{tokens}").status_code == 404
        assert post(other, tokens, {"name": "x"}).status_code == 404
        assert other.delete(f"/api/{tokens}").status_code == 404
        assert post(other, f"{tokens}tok-{token.pk}/rotate/").status_code == 404
        assert other.delete(f"/api/{tokens}tok-{token.pk}/").status_code == 404
    assert post(stranger, "service-accounts/", {"username": "x"}).status_code == 403
    assert refused(post(stranger, "service-accounts/", {"username": "x", "team": "Linguists"})) == (
        400,
        ["team"],
    )
    assert (
        post(token_client(member), "service-accounts/", {"username": "x", "team": "Linguists"}).status_code
        == 403
    )
    assert post(below, "service-accounts/", {"username": "x", "team": "Linguists"}).status_code == 403
    token.refresh_from_db()
    assert (token.revoked_at, User.objects.filter(is_service=True).count()) == (None, 1)


def test_an_administrator_makes_one_for_no_team_and_no_token_for_a_person(
    admin_api: Program, person: User
) -> None:
    made = post(admin_api, "service-accounts/", {"username": "nightly"})
    assert (made.status_code, made.json()["team"]) == (201, None)
    assert refused(post(admin_api, "service-accounts/", {"username": "NIGHTLY"})) == (400, ["username"])
    assert admin_api.get("/api/users/nightly/").json()["service"] is True
    assert admin_api.get("/api/users/ada/").json()["service"] is False
    token = post(admin_api, "users/nightly/tokens/", {"name": "x", "scope": "admin", "expires_at": None})
    assert (token.status_code, token.json()["expires_at"]) == (201, None)
    assert refused(post(admin_api, "users/ada/tokens/", {"name": "x"})) == (400, ["user"])
    own, _ = create_token(owner=person, name="own", now=database_now())
    rotated = post(admin_api, f"users/ada/tokens/tok-{own.pk}/rotate/")
    assert refused(rotated) == (400, ["user"]), "nobody else gets to act as a person"
    assert refused(post(admin_api, "users/nightly/tokens/", {"name": "x", "team": "none"})) == (400, ["team"])


def test_a_lead_gives_no_rights_of_administrators(api: Program, person: User, team: Team) -> None:
    account = post(api, "service-accounts/", {"username": "ci-bot", "team": "Linguists"}).json()
    tokens = f"users/{account['id']}/tokens/"
    assert post(api, tokens, {"name": "x", "scope": "admin"}).status_code == 403
    wide = token_client(person, Scope.ADMIN)
    assert post(wide, tokens, {"name": "x", "scope": "admin"}).status_code == 403
    owner = User.objects.get(username="ci-bot")
    token, _ = create_token(owner=owner, name="of an admin", now=database_now(), scope=Scope.ADMIN)
    assert post(wide, f"{tokens}tok-{token.pk}/rotate/").status_code == 403
    User.objects.filter(pk=owner.pk).update(is_staff=True)
    assert post(wide, tokens, {"name": "x", "scope": "read"}).status_code == 404


@pytest.mark.parametrize("scope", [Scope.READ, Scope.SUBMIT, Scope.WRITE])
def test_a_token_rotates_itself_and_both_work_for_a_day(person: User, scope: Scope) -> None:
    now = database_now()
    old, plain = create_token(
        owner=person, name="ci", now=now, scope=scope, expires_at=now + timedelta(days=30),
        networks=["127.0.0.0/8"],
    )  # fmt: skip
    own = program(plain)
    rotated = post(own, f"tokens/tok-{old.pk}/rotate/", **{"Idempotency-Key": "1"})
    assert rotated.status_code == 201, rotated.content
    told = rotated.json()
    assert (told["name"], told["scope"], told["networks"]) == ("ci", scope, ["127.0.0.0/8"])
    assert rotated["Location"] == f"/api/tokens/{told['id']}/"
    lost = post(own, f"tokens/tok-{old.pk}/rotate/", **{"Idempotency-Key": "1"})
    assert (lost.json()["id"], lost.json()["token"]) == (told["id"], None)
    new = post(own, f"tokens/tok-{old.pk}/rotate/").json()  # the text was lost before it was used
    assert program(told["token"]).get("/api/me/").status_code == 401
    assert program(new["token"]).get("/api/me/").status_code == own.get("/api/me/").status_code == 200
    assert post(own, f"tokens/tok-{old.pk}/rotate/").status_code == 409, "the new one is in use"
    old.refresh_from_db()
    assert old.expires_at is not None
    assert timedelta(hours=23) < old.expires_at - now < timedelta(hours=25)
    lives = ApiToken.objects.get(pk=new["id"].removeprefix("tok-")).expires_at
    assert lives is not None
    assert timedelta(days=29) < lives - now < timedelta(days=31)


def test_a_token_gets_no_greater_one_by_rotating_another(person: User, stranger: Program) -> None:
    now = database_now()
    greater = [
        create_token(owner=person, name="g", now=now, **bounds)[0]
        for bounds in ({"scope": Scope.ADMIN}, {"expires_at": None}, {"expires_at": now + timedelta(days=9)})
    ]
    short = {"expires_at": now + timedelta(days=2), "networks": ["127.0.0.1"]}
    asking = token_client(person, **short)
    for token in greater:
        assert post(asking, f"tokens/tok-{token.pk}/rotate/").status_code == 403
        assert post(stranger, f"tokens/tok-{token.pk}/rotate/").status_code == 404
    like, _ = create_token(
        owner=person, name="l", now=now, expires_at=now + timedelta(days=1), networks=["127.0.0.1"]
    )
    for scope in (Scope.READ, Scope.SUBMIT):
        assert post(token_client(person, scope), f"tokens/tok-{like.pk}/rotate/").status_code == 403
    assert post(asking, f"tokens/tok-{like.pk}/rotate/").status_code == 201
    ended = ApiToken.objects.filter(owner=person, revoked_at__isnull=False).count()
    assert (ended, ApiToken.objects.filter(follows__in=greater).count()) == (0, 0)
