"""Service accounts: no password, no session, run by administrators and by leads for their team."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import ApiToken, AuditEntry, Membership, Role, Team, User
from portal.clock import database_now
from scheduler.models import Job
from scheduler.services.deletions import delete_team
from tests.harness import world


@pytest.fixture
def team(person: User) -> Team:
    """One that `person` leads."""
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person, role=Role.LEAD)
    return team


def made(browser: Client, team: Team | None, name: str = "ci-bot") -> User:
    answer = browser.post("/service-accounts/", {"username": name, "team": team.pk if team else ""})
    assert answer.status_code == 302, answer.content.decode()
    return User.objects.get(username=name)


def with_token(browser: Client, account: User, **chosen: str) -> dict[str, str]:
    values = {"name": "pipeline", "scope": "submit", "days": "30", **chosen}
    answer = browser.post(f"/service-accounts/{account.pk}/", values)
    assert answer.status_code == 201, answer.content.decode()
    return {"Authorization": f"Bearer {answer.context['plain']}"}


def test_a_lead_makes_one_for_their_team_and_its_jobs_are_its_own(browser: Client, team: Team) -> None:
    account = made(browser, team)
    bot = Client(headers=with_token(browser, account))
    assert bot.get("/api/me/").json()["username"] == "ci-bot"
    file = world.data_file(account)
    body = {"model": "builtin/tiny-llama", "training_file": file.pk, "team": "Linguists"}
    assert bot.post("/api/jobs/", body, content_type="application/json").status_code == 201
    assert Job.objects.get().owner == account
    listed = browser.get("/jobs/").content.decode()
    assert "ci-bot <span" in listed
    assert "service account" in listed
    assert "service account" in browser.get(f"/jobs/{Job.objects.get().pk}/").content.decode()
    actions = set(AuditEntry.objects.values_list("action", "actor_name"))
    assert {("service account created", "ada"), ("token created", "ada")} <= actions


def test_it_has_neither_password_nor_session(browser: Client, team: Team, admin: User) -> None:
    account = made(browser, team)
    account.set_password("somebody set one")
    account.save()
    entry = {"username": "ci-bot", "password": "somebody set one"}
    assert Client().post("/login/", entry).status_code == 200, "the form once more"
    session = Client()
    session.force_login(account)
    assert session.get("/jobs/")["Location"].startswith("/login/")
    refused = browser.post(f"/users/{account.pk}/password/", {}, follow=True)
    assert "no password" in refused.content.decode()


def test_it_is_no_human_in_lists_and_choices(browser: Client, team: Team, admin: User) -> None:
    account = made(browser, team)
    assert "ci-bot" not in browser.get("/users/").content.decode()
    assert "ci-bot" in browser.get("/service-accounts/").content.decode()
    gone = world.user("bob")
    refused = browser.post(f"/users/{gone.pk}/deactivate/", {"hand_over_to": "ci-bot"})
    assert "no user with this name" in refused.content.decode()
    page = browser.get(f"/users/{account.pk}/").content.decode()
    assert "Service account" in page
    assert "Generate a new password" not in page
    assert "service account" in browser.get(f"/teams/{team.pk}/").content.decode()


def test_others_neither_see_nor_run_it(browser: Client, team: Team) -> None:
    account = made(browser, team)
    with_token(browser, account)
    token = ApiToken.objects.get()
    other = world.user("bob")
    stranger = Client()
    stranger.force_login(other)
    assert stranger.get("/service-accounts/").status_code == 403
    theirs = Team.objects.create(name="Poets")
    Membership.objects.create(team=theirs, user=other, role=Role.LEAD)
    assert "ci-bot" not in stranger.get("/service-accounts/").content.decode()
    here = f"/service-accounts/{account.pk}/"
    assert stranger.get(here).status_code == 404
    for address in ("end/", f"tokens/{token.pk}/revoke/", f"tokens/{token.pk}/rotate/"):
        assert stranger.post(here + address).status_code == 404
    for teams_id in (team.pk, ""):
        answer = stranger.post("/service-accounts/", {"username": "x", "team": teams_id})
        assert (answer.status_code, list(answer.context["form"].errors)) == (400, ["team"])
    added = stranger.post(f"/teams/{theirs.pk}/add/", {"username": "ci-bot", "role": "member"})
    assert "another team" in added.content.decode()
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_lead_gives_it_no_rights_of_administrators(browser: Client, team: Team) -> None:
    account = made(browser, team)
    values = {"name": "pipeline", "scope": "admin", "days": "30"}
    answer = browser.post(f"/service-accounts/{account.pk}/", values)
    assert (answer.status_code, list(answer.context["form"].errors)) == (400, ["scope"])
    User.objects.filter(pk=account.pk).update(is_staff=True)
    answer = browser.post(f"/service-accounts/{account.pk}/", {**values, "scope": "read"})
    assert answer.status_code == 404, "an administrator is run by administrators alone"


def test_its_end_ends_its_tokens_and_jobs(browser: Client, team: Team) -> None:
    account = made(browser, team)
    asks = with_token(browser, account)
    world.job(account, team=team)
    browser.post(f"/service-accounts/{account.pk}/end/")
    assert Client().get("/api/me/", headers=asks).status_code == 401
    assert Job.objects.get().state == "cancelled"
    browser.post(f"/service-accounts/{account.pk}/activate/")
    assert Client().get("/api/me/", headers=asks).status_code == 401
    assert Client().get("/api/me/", headers=with_token(browser, account)).status_code == 200


def test_it_ends_with_its_team(admin_browser: Client, team: Team, admin: User) -> None:
    account = made(admin_browser, team)
    asks = with_token(admin_browser, account)
    delete_team(team=team, actor=admin, now=database_now())
    assert Client().get("/api/me/", headers=asks).status_code == 401
    assert not User.objects.get(pk=account.pk).is_active


@pytest.mark.parametrize("name", ["ADA", "", "two words", "x" * 151])
def test_a_name_that_cannot_be_had_is_told_at_its_field(browser: Client, team: Team, name: str) -> None:
    answer: Any = browser.post("/service-accounts/", {"username": name, "team": team.pk})
    assert (answer.status_code, list(answer.context["form"].errors)) == (400, ["username"])


def test_a_token_is_rotated_on_its_page(browser: Client, person: User) -> None:
    first = browser.post("/tokens/", {"name": "ci", "scope": "read", "days": "30"}).context["plain"]
    token = ApiToken.objects.get()
    answer = browser.post(f"/tokens/{token.pk}/rotate/")
    second = answer.context["plain"]
    for plain in (first, second):
        assert Client().get("/api/me/", headers={"Authorization": f"Bearer {plain}"}).status_code == 200
    page = browser.get("/tokens/").content.decode()
    assert page.count("Rotate ci") == 1, "the new one alone"
    assert "GET /api/me/ from 127.0.0.1" in page
    assert "in use" in browser.post(f"/tokens/{token.pk}/rotate/", follow=True).content.decode()
