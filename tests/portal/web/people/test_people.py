"""Users, teams, tokens and the record through the test client."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.accounts.models import ApiToken, AuditEntry, Membership, Role, Team, User
from portal.accounts.services import audit
from scheduler.models import Claim, Job
from tests.harness import world

ADMIN_PAGES = ("/users/", "/users/1/", "/audit/")
MARKUP = "<script>alert(1)</script>"


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def signs_in(username: str, password: str) -> bool:
    answer = Client().post("/login/", {"username": username, "password": password})
    return answer.status_code == 302


def posted(client: Client, path: str, values: dict[str, str] | None = None) -> str:
    """The page after a form was sent."""
    return client.post(path, values or {}, follow=True).content.decode()


@pytest.mark.parametrize("path", ADMIN_PAGES)
def test_pages_about_people_are_for_administrators(path: str, browser: Client) -> None:
    assert browser.get(path).status_code == 403


def test_a_user_is_made_with_a_password_that_is_shown_once(browser: Client, admin: User) -> None:
    answer = browser.post("/users/", {"username": "grace", "email": "g@example.org"})
    assert answer.status_code == 201
    assert signs_in("grace", answer.context["password"])
    assert answer.context["password"] not in browser.get("/users/").content.decode()
    assert actions() == ["user created", "signed in"]


@pytest.mark.parametrize("name", ["", "ada", "ADA", "two words", "x" * 151, "a\x00b", MARKUP])
def test_a_name_that_cannot_be_had_is_told_at_its_field(browser: Client, admin: User, name: str) -> None:
    answer = browser.post("/users/", {"username": name, "email": "g@example.org"})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == ["username"]
    assert b"g@example.org" in answer.content
    assert User.objects.count() == 1


def test_two_administrators_changing_one_person_meet_a_conflict(browser: Client, admin: User) -> None:
    path = f"/users/{world.user('eve').pk}/"
    mine = {"email": "mine@example.org", "seen_email": ""}
    assert "Someone changed" not in posted(browser, path + "change/", mine)
    theirs = {"email": "theirs@example.org", "is_staff": "on", "seen_email": ""}
    assert "Someone else has changed this user" in posted(browser, path + "change/", theirs)
    changed = User.objects.get(username="eve")
    assert (changed.email, changed.is_staff) == ("mine@example.org", False)
    assert actions() == ["user changed"]


def test_a_person_is_locked_out_and_let_in_again(browser: Client, admin: User) -> None:
    eve = world.user("eve")
    posted(browser, f"/users/{eve.pk}/deactivate/")
    assert not signs_in("eve", "x")
    posted(browser, f"/users/{eve.pk}/activate/")
    assert signs_in("eve", "x")
    assert actions() == ["user locked out", "sign-in failed", "user let in", "signed in"]


def test_nobody_takes_their_own_role_or_access(browser: Client, admin: User) -> None:
    path = f"/users/{admin.pk}/"
    assert "ask another administrator" in posted(
        browser, path + "change/", {"email": "", "seen_is_staff": "on"}
    )
    assert "ask another administrator" in posted(browser, path + "deactivate/")
    admin.refresh_from_db()
    assert admin.is_admin


def test_a_new_password_ends_the_old_one_and_its_sessions(browser: Client, admin: User) -> None:
    eve, hers = world.user("eve"), Client()
    hers.force_login(eve)
    answer = browser.post(f"/users/{eve.pk}/password/")
    assert hers.get("/jobs/").status_code == 302
    assert signs_in("eve", answer.context["password"])


def test_people_change_their_own_password(browser: Client, person: User) -> None:
    new = {"old_password": "x", "new_password1": "plum tree 77", "new_password2": "plum tree 77"}
    assert b"incorrect" in browser.post("/password/", {**new, "old_password": "y"}).content
    assert browser.post("/password/", new)["Location"] == "/"
    assert signs_in("ada", "plum tree 77")


def test_administrators_make_teams_and_leads_run_them(browser: Client, person: User) -> None:
    assert browser.post("/teams/", {"name": "Mine"}).status_code == 403
    team = Team.objects.create(name="Linguists")
    mine = Membership.objects.create(team=team, user=person)
    world.user("eve")
    path = f"/teams/{team.pk}/"
    assert browser.post(path + "add/", {"username": "eve", "role": "member"}).status_code == 403
    Membership.objects.update(role=Role.LEAD)
    assert "eve" in posted(browser, path + "add/", {"username": "eve", "role": "member"})
    eve = Membership.objects.get(user__username="eve")
    posted(browser, f"{path}members/{eve.pk}/role/", {"seen": "member", "role": "lead"})
    late = {"seen": "member", "role": "lead"}
    assert "Someone else has changed this member" in posted(browser, f"{path}members/{eve.pk}/role/", late)
    posted(browser, path + "rename/", {"name": "Grammarians", "seen": "Linguists"})
    assert "Someone else has renamed" in posted(
        browser, path + "rename/", {"name": "Others", "seen": "Linguists"}
    )
    posted(browser, f"{path}members/{eve.pk}/remove/")
    assert browser.post(path + "delete/", {"name": "Grammarians"}).status_code == 403
    assert browser.post(f"{path}members/{mine.pk}/remove/")["Location"] == "/teams/"
    assert actions() == ["member added", "role changed", "team renamed", "member removed", "member removed"]


def test_a_team_of_others_does_not_exist(browser: Client) -> None:
    team = Team.objects.create(name="Secret")
    member = Membership.objects.create(team=team, user=world.user("eve"))
    assert browser.get(f"/teams/{team.pk}/").status_code == 404
    assert b"Secret" not in browser.get("/teams/").content
    for verb in ("add", "rename", "delete", f"members/{member.pk}/remove"):
        assert browser.post(f"/teams/{team.pk}/{verb}/", {"name": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"username": "nobody", "role": "member"}, "username"),
        ({"username": "ada", "role": "member"}, "username"),
        ({"username": "a\x00b", "role": "member"}, "username"),
        ({"username": "eve", "role": "king"}, "role"),
    ],
)
def test_a_member_that_cannot_be_added_is_told_at_the_field(
    browser: Client, admin: User, values: dict[str, str], field: str
) -> None:
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=admin)
    world.user("eve")
    answer = browser.post(f"/teams/{team.pk}/add/", values)
    assert answer.status_code == 400
    assert list(answer.context["member_form"].errors) == [field]


def test_a_team_with_live_jobs_is_not_deleted(browser: Client, admin: User) -> None:
    posted(browser, "/teams/", {"name": "Linguists"})
    assert "already" in posted(browser, "/teams/", {"name": "Linguists"})
    team = Team.objects.get()
    world.job(admin, team=team)
    path = f"/teams/{team.pk}/delete/"
    assert "not ended" in posted(browser, path, {"name": "x"})
    Job.objects.update(state="cancelled")
    posted(browser, path, {"name": "x"})
    assert not Team.objects.exists()
    assert Job.objects.exists()
    assert actions() == ["team created", "team deleted"]


def test_a_token_is_shown_once_and_revoked(browser: Client, person: User) -> None:
    answer = browser.post("/tokens/", {"name": "notebook", "scope": "write", "days": "30"})
    plain = answer.context["plain"]
    asks = {"Authorization": f"Bearer {plain}"}
    assert Client().get("/api/me/", headers=asks).status_code == 200
    assert plain not in browser.get("/tokens/").content.decode()
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    browser.post(f"/tokens/{token.pk}/revoke/")
    assert Client().get("/api/me/", headers=asks).status_code == 401
    foreign = ApiToken.objects.create(
        owner=world.user("eve"), name="x", digest="d", hint="h", created_at=token.created_at
    )
    assert browser.post(f"/tokens/{foreign.pk}/revoke/").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("name", "x" * 101), ("scope", "root"), ("days", "1e9"), ("days", "-1")],
)
def test_a_token_that_cannot_be_made_is_told_at_its_field(browser: Client, field: str, value: str) -> None:
    values = {"name": "notebook", "scope": "write", "days": "30", field: value}
    answer = browser.post("/tokens/", values)
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]


def test_the_record_is_filtered_and_paged(
    browser: Client, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.admin.audit.PAGE", 2)
    for name in ("Linguists", "Grammarians", "Poets"):
        browser.post("/teams/", {"name": name})
    browser.post("/tokens/", {"name": "notebook", "scope": "read", "days": ""})
    first = browser.get("/audit/")
    assert [entry.action for entry in first.context["entries"]] == ["token created", "team created"]
    older = browser.get("/audit/", {"after": first.context["next"]})
    assert len(older.context["entries"]) == 2
    assert len(browser.get("/audit/", {"action": "token"}).context["entries"]) == 1
    assert b"No entry matches" in browser.get("/audit/", {"actor": "nobody"}).content
    assert browser.get("/audit/", {"after": "1e9"}).status_code == 400
    assert browser.get("/audit/", {"text": "a\x00b"}).status_code == 400


def test_the_record_names_what_it_is_about_and_tells_details_in_words(browser: Client, admin: User) -> None:
    node = world.fake_node(name="gpu-box")
    browser.post("/teams/", {"name": "Linguists"})
    data = {"is_staff": False, "budget_s": 1200.0, "rows": 12000, "from": None}
    job = world.placed_job(node, owner=admin, name="my job")
    audit(action="odd", actor=admin, target=f"claim {Claim.objects.get().pk}", data=data, now=timezone.now())
    browser.post(f"/nodes/{node.node_id}/drain/", {"reason": "new disk"})
    page = browser.get("/audit/").content.decode()
    assert f'{job}<div class="small text-body-secondary">claim ' in page
    assert f'<a href="/nodes/{node.node_id}/">gpu-box</a>' in page
    assert f'<a href="/teams/{Team.objects.get().pk}/">Linguists</a>' in page
    assert "Reason: new disk" in page
    assert "Time budget: 20 min, From: –, Administrator: no, Rows: 12,000" in page
    assert "is_staff" not in page


def test_the_record_says_values_as_other_pages_do(browser: Client, admin: User, settings: Any) -> None:
    settings.CURRENCY = "EUR"
    job = world.job(admin, name="my job")
    expected = {
        "goal": ["balanced", "budget"],
        "budget": [None, 12.5],
        "priority": [0, 1],
        "topology": ["none", "best_effort"],
        "params.lora_r": [8, 16],
        "deadline_at": ["2026-11-26T12:00:00+00:00", None],
    }
    now = timezone.now()
    audit(action="job changed", actor=admin, target=job.pk, data=expected, now=now)
    audit(action="node price changed", actor=admin, target="node-gone", data={"from": 0.5, "to": 2}, now=now)
    audit(action="node price changed", actor=admin, target="node-new", data={"from": 0.0, "to": 3}, now=now)
    audit(action="file deleted", actor=admin, target="file-gone", data={"bytes": 3 << 20}, now=now)
    audit(action="odd", actor=admin, data={"quotas": [{"gpu_model": "L4", "guaranteed": 2}]}, now=now)
    page = browser.get("/audit/").content.decode()
    for words in (
        f'<a href="/jobs/{job.pk}/">my job</a>',
        "Goal: Balanced between time and cost → Fastest within a budget",
        "Budget: – → 12.5 EUR",
        "Priority class: normal → high",
        "GPUs close together: not needed → if possible",
        "LoRA rank: 8 → 16",
        "Deadline: 2026-11-26 12:00:00 UTC → –",
        "From: 0.5 EUR, To: 2 EUR",
        "From: none, To: 3 EUR",
        "Bytes: 3.0 MiB",
        "Quotas: GPU model L4, guaranteed 2",
    ):
        assert words in page


def test_texts_of_people_are_shown_as_plain_text(browser: Client, admin: User) -> None:
    browser.post("/teams/", {"name": MARKUP})
    browser.post("/tokens/", {"name": MARKUP, "scope": "read", "days": ""})
    for path in ("/teams/", f"/teams/{Team.objects.get().pk}/", "/tokens/", "/audit/"):
        assert MARKUP not in browser.get(path).content.decode()


@pytest.mark.parametrize("model", ["scheduler/job", "scheduler/node", "accounts/user", "knowledge/execution"])
def test_the_tables_are_for_administrators_to_look_at(model: str, browser: Client, admin: User) -> None:
    assert browser.get(f"/admin/{model}/").status_code == 200
    assert browser.get(f"/admin/{model}/add/").status_code == 403
    User.objects.update(is_staff=False)
    assert browser.get(f"/admin/{model}/").status_code == 302


def test_the_tables_show_no_secret_and_delete_nothing(browser: Client, admin: User) -> None:
    node = world.fake_node()
    shown = browser.get(f"/admin/scheduler/node/{node.node_id}/change/")
    assert shown.status_code == 200
    assert b"token_hash" not in shown.content
    assert browser.post(f"/admin/scheduler/node/{node.node_id}/delete/", {"post": "yes"}).status_code == 403
    user = browser.get(f"/admin/accounts/user/{admin.pk}/change/").content
    assert admin.password.encode() not in user


def test_actions_of_earlier_releases_are_told_in_words(browser: Client, person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_staff=True)
    audit(action="history.imported", actor=person, target="runs.csv", data={}, now=timezone.now())
    shown = browser.get("/audit/").content.decode()
    assert "history imported" in shown
    assert "history.imported" not in shown
