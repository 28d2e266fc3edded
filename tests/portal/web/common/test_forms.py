"""Answers of the administrators' forms to bad input.

See reliability: "Browser forms" and "Admin". Stale edits of each form are in test_web_nodes,
test_web_people and test_web_policy, beside the good ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from django.test import Client

from portal.accounts.models import Membership, Team, User
from scheduler.models import Job, Node
from scheduler.selectors.policy import current_policy
from tests.harness import world

MARKUP = "<script>alert(1)</script>\x1b[31m"
NAMES = ("drain", "price", "user", "new user", "team", "new team", "role", "policy")


@dataclass(frozen=True)
class Sent:
    """A form as an administrator sends it.

    text: the name of a field that takes words

    about: returns the state that the form changes
    """

    path: str
    about: Callable[[], object]
    text: str = ""
    values: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def forms(admin: User) -> dict[str, Sent]:
    node, team = world.fake_node(), Team.objects.create(name="Linguists")
    eve = world.user("eve")
    member = Membership.objects.create(team=team, user=eve)
    at, of_team = f"/nodes/{node.node_id}/", f"/teams/{team.pk}/"
    here, hers = Node.objects.filter(pk=node.node_id), User.objects.filter(pk=eve.pk)
    price, mail = here.values_list("price_per_gpu_hour"), hers.values_list("email", "is_superuser")
    state, role = here.values_list("state"), Membership.objects.values_list("role")
    rename = {"name": "Poets", "seen": "Linguists"}
    choice = {"name": "sjf", "reason": "why", "seen": "0"}
    sent = (
        Sent(at + "drain/", lambda: list(state.all()), "reason", {"reason": "new disk"}),
        Sent(at + "price/", lambda: list(price.all()), "price", {"price": "2", "seen": "0.0"}),
        Sent(f"/users/{eve.pk}/change/", lambda: list(mail.all()), "email", {"email": "eve@example.org"}),
        Sent("/users/", User.objects.count, "username", {"username": "bob", "email": "b@example.org"}),
        Sent(of_team + "rename/", lambda: Team.objects.get().name, "name", rename),
        Sent("/teams/", Team.objects.count, "name", {"name": "New"}),
        Sent(
            f"{of_team}members/{member.pk}/role/",
            lambda: list(role.all()),
            "",
            {"role": "lead", "seen": "member"},
        ),
        Sent("/policy/", current_policy, "reason", choice),
    )
    return dict(zip(NAMES, sent, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_each_form_changes_what_it_is_about(name: str, browser: Client, forms: dict[str, Sent]) -> None:
    form = forms[name]
    before = form.about()
    assert browser.post(form.path, form.values).status_code in (201, 302)
    assert form.about() != before


@pytest.mark.one_database
@pytest.mark.parametrize("token", ["", "x" * 64])
@pytest.mark.parametrize("name", NAMES)
def test_without_its_token_or_with_an_old_one_nothing_is_changed(
    name: str, token: str, forms: dict[str, Sent], admin: User
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    client.get("/teams/")  # sets the cookie that the token must match
    form = forms[name]
    before = form.about()
    answer = client.post(form.path, {**form.values, "csrfmiddlewaretoken": token})
    assert answer.status_code == 403
    assert form.about() == before


@pytest.mark.one_database
@pytest.mark.parametrize("name", NAMES)
def test_hidden_extra_fields_are_ignored_and_logged(
    name: str, browser: Client, forms: dict[str, Sent], caplog: pytest.LogCaptureFixture
) -> None:
    extra = {"owner": "1", "state": "lost", "is_superuser": "on"}
    with caplog.at_level(logging.WARNING):
        browser.post(forms[name].path, {**forms[name].values, **extra})
    assert "is_superuser, owner, state" in caplog.text
    assert not User.objects.get(username="eve").is_superuser
    assert not Node.objects.filter(state="lost").exists()


@pytest.mark.parametrize("text", ["", "a\x00b", "x" * 1_000_000])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "role"])
def test_a_text_that_is_none_is_told_at_its_field_and_the_others_are_kept(
    name: str, text: str, browser: Client, forms: dict[str, Sent]
) -> None:
    form = forms[name]
    if name == "user" and not text:
        return  # an address may be taken away
    before = form.about()
    answer = browser.post(form.path, {**form.values, form.text: text})
    assert answer.status_code == 400
    assert b"invalid-feedback" in answer.content
    for other in set(form.values) - {form.text}:
        assert form.values[other].encode() in answer.content
    assert form.about() == before


def test_markup_and_terminal_codes_are_plain_text_on_every_page(browser: Client, admin: User) -> None:
    node = world.fake_node(name=MARKUP.partition("\x1b")[0])  # a name with a terminal code is refused
    browser.post(f"/nodes/{node.node_id}/drain/", {"reason": MARKUP})
    browser.post("/policy/", {"name": "sjf", "reason": MARKUP, "seen": "0"})
    for path in ("/", "/nodes/", f"/nodes/{node.node_id}/", "/policy/", "/queue/", "/audit/"):
        assert b"<script>alert" not in browser.get(path).content, path


def test_the_tables_offer_no_act_on_many_rows(browser: Client, admin: User) -> None:
    job = world.job(admin)
    act = {"action": "delete_selected", "_selected_action": [job.pk], "post": "yes"}
    shown = browser.get("/admin/scheduler/job/").content
    assert b"delete_selected" not in shown
    browser.post("/admin/scheduler/job/", act)
    assert Job.objects.filter(pk=job.pk).exists()
