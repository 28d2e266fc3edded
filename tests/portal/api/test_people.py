"""Users, teams and the audit log through REST.

Programs of administrators can do whatever the pages do.
"""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, Membership, Role, Team, User
from tests.harness import world
from tests.portal.conftest import token_client


def post(api: APIClient, path: str, body: object = None, **headers: str) -> Any:
    return api.post(f"/api/{path}", {} if body is None else body, format="json", headers=headers)


def acts() -> list[str]:
    """The record of people and teams, oldest first; making tokens aside."""
    rows = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    return [action for action in rows if not action.startswith("token")]


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_new_user_gets_a_password_once_and_can_sign_in(admin_api: APIClient) -> None:
    made = post(admin_api, "users/", {"username": "grace", "email": "g@example.org"})
    assert made.status_code == 201, made.content
    assert User.objects.get(username="grace").check_password(made.json()["password"])
    shown = admin_api.get(f"/api/users/{made.json()['id']}/").json()
    assert (shown["username"], shown["admin"], shown["active"]) == ("grace", False, True)
    assert "password" not in shown
    assert acts() == ["user created"]


def test_a_user_is_changed_if_nobody_else_did_meanwhile(admin_api: APIClient, person: User) -> None:
    path, before = f"/api/users/user-{person.pk}/", {"email": person.email, "admin": False}
    change = lambda body: admin_api.patch(path, body, format="json")  # noqa: E731
    assert change({"admin": True, "email": "ada@example.org", "seen": before}).json()["admin"] is True
    assert error(change({"email": "", "seen": before})) == (409, "changed_meanwhile")
    assert User.objects.get(pk=person.pk).email == "ada@example.org"
    shown = change({"admin": False}).json()
    assert (shown["admin"], shown["email"]) == (False, "ada@example.org"), "what is left out stays"
    for same in ({}, {"admin": False}, {"seen": {"admin": False}}):
        assert change(same).json() == shown
    assert acts().count("user changed") == 2
    assert admin_api.get("/api/users/ada/").json() == shown


def test_a_user_is_locked_out_let_in_and_gets_a_new_password(admin_api: APIClient, person: User) -> None:
    path = f"users/user-{person.pk}/"
    assert post(admin_api, path + "deactivate/").json()["active"] is False
    assert post(admin_api, path + "activate/").json()["active"] is True
    password = post(admin_api, path + "password/").json()["password"]
    assert User.objects.get(pk=person.pk).check_password(password)
    assert acts() == ["user locked out", "user let in", "password reset"]


def test_administrators_do_not_lock_themselves_out(admin_api: APIClient) -> None:
    me = admin_api.get("/api/me/").json()
    refused = post(admin_api, f"users/{me['id']}/deactivate/")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["active"])
    refused = admin_api.patch(f"/api/users/{me['id']}/", {"admin": False}, format="json")
    assert refused.status_code == 400


def test_users_are_found_by_a_part_of_their_name(admin_api: APIClient, person: User) -> None:
    world.user("eve")
    found = admin_api.get("/api/users/", {"username": "AD"}).json()
    assert [user["username"] for user in found["data"]] == ["ada"]
    assert found["total"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "username"),
        ({"username": ""}, "username"),
        ({"username": 7}, "username"),
        ({"username": "a b"}, "username"),
        ({"username": "x" * 151}, "username"),
        ({"username": "ada"}, "username"),
        ({"username": "new", "email": "nowhere"}, "email"),
        ({"username": "new", "email": 1}, "email"),
        ({"username": "new", "admin": "yes"}, "admin"),
        ({"username": "new", "is_superuser": True}, "is_superuser"),
    ],
)
def test_a_wrong_field_of_a_user_is_named(
    admin_api: APIClient, person: User, body: dict[str, object], field: str
) -> None:
    refused = post(admin_api, "users/", body)
    assert refused.status_code == 400, refused.content
    assert list(refused.json()["error"]["fields"]) == [field]
    assert not User.objects.filter(username="new").exists()


@pytest.mark.parametrize("path", ["users/", "teams/", "audit/"])
@pytest.mark.parametrize("query", ["limit=0", "after=x", "after=%00", "order=password", "limit=1&limit=2"])
def test_a_bad_query_is_refused_by_name(admin_api: APIClient, path: str, query: str) -> None:
    refused = admin_api.get(f"/api/{path}?{query}")
    assert refused.status_code == 400
    assert list(refused.json()["error"]["fields"]) == [query.split("=")[0]]


@pytest.mark.parametrize("path", ["users/user-999999/", "teams/team-999999/", "users/7/", "teams/win-1/"])
def test_what_does_not_exist_is_404(admin_api: APIClient, path: str) -> None:
    assert error(admin_api.get(f"/api/{path}")) == (404, "not_found")


def test_a_team_is_made_filled_renamed_and_deleted(admin_api: APIClient, person: User) -> None:
    created = post(admin_api, "teams/", {"name": "Linguists"})
    path = f"/api/teams/{created.json()['id']}/"
    assert created["Location"] == path
    patch = lambda at, body: admin_api.patch(at, body, format="json")  # noqa: E731
    ada = {"id": f"user-{person.pk}", "name": "ada"}
    for named in ada.values():
        joined = admin_api.post(path + "members/", {"user": named, "role": "lead"}, format="json")
        assert (joined.status_code, joined.json()["members"]) == (201, [{**ada, "role": "lead"}])
        assert admin_api.delete(f"{path}members/{named}/").status_code == 204
    admin_api.post(path + "members/", {"user": "ada", "role": "lead"}, format="json")
    member = f"{path}members/{ada['id']}/"
    assert patch(member, {"role": "member", "seen": "lead"}).status_code == 200
    assert error(patch(member, {"role": "lead", "seen": "lead"})) == (409, "changed_meanwhile")
    assert patch(member, {"role": "member"}).status_code == 200, "it is so already"
    renamed = patch(path, {"name": "Speech", "seen": {"name": "Linguists"}}).json()
    assert (renamed["name"], renamed["size"]) == ("Speech", 1)
    assert error(patch(path, {"name": "Sound", "seen": {"name": "Linguists"}})) == (409, "changed_meanwhile")
    for same in ({}, {"name": "Speech"}, {"language_model": False}):
        assert patch(path, same).json() == renamed
    assert admin_api.get("/api/teams/Speech/").json() == renamed
    assert admin_api.delete(member).status_code == 204
    assert admin_api.delete(path).status_code == 204
    assert acts() == [
        "team created", *["member added", "member removed"] * 2, "member added", "role changed",
        "team renamed", "member removed", "team deleted",
    ]  # fmt: skip


def test_a_lead_runs_the_own_team_and_a_member_does_not(api: APIClient, person: User) -> None:
    team, other = Team.objects.create(name="Linguists"), Team.objects.create(name="Chemists")
    membership = Membership.objects.create(team=team, user=person, role=Role.MEMBER)
    mate = world.user("mate")
    join = f"teams/team-{team.pk}/members/"
    assert post(api, join, {"user": "mate"}).status_code == 403
    Membership.objects.filter(pk=membership.pk).update(role=Role.LEAD)
    assert post(api, join, {"user": f"user-{mate.pk}"}).status_code == 201
    assert post(api, f"teams/team-{other.pk}/members/", {"user": "mate"}).status_code == 404
    assert [shown["name"] for shown in api.get("/api/teams/").json()["data"]] == ["Linguists"]
    assert list(mate.teams.all()) == [team]


def test_an_administrators_small_token_runs_no_team(db: None) -> None:
    team = Team.objects.create(name="Linguists")
    small = token_client(world.admin())
    assert small.patch(f"/api/teams/team-{team.pk}/", {"name": "x"}, format="json").status_code == 403


def test_an_id_comes_before_a_name_that_looks_like_one(admin_api: APIClient) -> None:
    first = Team.objects.create(name="Linguists")
    Team.objects.create(name=f"team-{first.pk}")
    assert admin_api.get(f"/api/teams/team-{first.pk}/").json()["name"] == "Linguists"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("teams/", {"name": ""}, "name"),
        ("teams/", {"name": "Linguists"}, "name"),
        ("teams/", {"name": "x" * 101}, "name"),
        ("teams/", {"name": "x", "owner": 1}, "owner"),
        ("teams/team-{team}/members/", {"user": "nobody"}, "user"),
        ("teams/team-{team}/members/", {"user": "ada", "role": "boss"}, "role"),
        ("teams/team-{team}/members/", {"username": "ada"}, "user"),
    ],
)
def test_a_wrong_field_of_a_team_is_named(
    admin_api: APIClient, person: User, path: str, body: dict[str, object], field: str
) -> None:
    team = Team.objects.create(name="Linguists")
    refused = post(admin_api, path.format(team=team.pk), body)
    assert refused.status_code == 400, refused.content
    assert field in refused.json()["error"]["fields"]


def test_a_team_with_live_jobs_is_not_deleted(admin_api: APIClient, person: User) -> None:
    team = Team.objects.create(name="Linguists")
    world.job(person, team=team)
    assert error(admin_api.delete(f"/api/teams/team-{team.pk}/")) == (409, "conflict")


def test_the_record_is_read_by_who_what_and_whom(admin_api: APIClient) -> None:
    post(admin_api, "teams/", {"name": "Linguists"})
    (entry,) = admin_api.get("/api/audit/", {"action": "team"}).json()["data"]
    assert (entry["action"], entry["data"]) == ("team created", {"name": "Linguists"})
    by = User.objects.get(username=entry["actor"]["name"])
    assert (entry["id"][:6], entry["actor"]["id"]) == ("audit-", f"user-{by.pk}")
    assert admin_api.get("/api/audit/", {"actor": "nobody"}).json()["data"] == []


KEY = {"Idempotency-Key": "k1"}


@pytest.mark.parametrize(
    ("path", "body", "secrets"),
    [
        ("users/", {"username": "grace"}, ["password"]),
        ("tokens/", {"name": "laptop"}, ["token"]),
        ("nodes/join-tokens/", {"uses": 3}, ["join_token", "command"]),
        ("teams/", {"name": "Linguists"}, []),
    ],
)
def test_a_creation_repeated_under_its_key_makes_nothing_and_tells_no_secret(
    admin_api: APIClient, path: str, body: dict[str, object], secrets: list[str]
) -> None:
    first, again = (post(admin_api, path, body, **KEY) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert all(first.json()[secret] for secret in secrets)
    assert again.json() == {**first.json(), **dict.fromkeys(secrets)}
    created = [action for action in acts() if action.endswith("created")]
    assert len(created) <= 1
    other = post(admin_api, path, {**body, next(iter(body)): "other" if "uses" not in body else 4}, **KEY)
    assert error(other) == (422, "key_reused")


def test_a_member_is_added_once_under_one_key(admin_api: APIClient, person: User) -> None:
    team = Team.objects.create(name="Linguists")
    path = f"teams/team-{team.pk}/members/"
    answers = [post(admin_api, path, {"user": "ada"}, **KEY) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert Membership.objects.count() == 1
