"""A compromised account is shut out at once, even while requests run.

This holds through REST and through the pages.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from portal.accounts.errors import NotAllowed
from portal.accounts.models import ApiToken, AuditEntry, Scope, User
from portal.accounts.services import create_bound_token, create_token, rotate_token
from portal.clock import database_now
from portal.web.people import tokens
from scheduler.loop.sweeps import sweep
from scheduler.models import Job, JoinToken
from scheduler.services import lockouts
from scheduler.services.jobs.verbs import pause_job
from scheduler.services.nodes.register import create_join_token
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts, step
from tests.harness.threads import at_once
from tests.portal.conftest import token_client
from trainer.protocol import PROTOCOL


class Intruder:
    """Someone with access to the account of eve.

    The intruder has her password, one of her sessions, one of her tokens, and a join token made by
    her.
    """

    def __init__(self) -> None:
        self.eve = world.user("eve")
        self.session, self.program = Client(), token_client(self.eve)
        self.session.force_login(self.eve)
        self.join_token = create_join_token(actor=self.eve, now=database_now(), uses=100)

    def gets_in(self) -> list[str]:
        """By which ways; joining leaves a node that never speaks."""
        ways = {
            "session": self.session.get("/jobs/").status_code == 200,
            "token": self.program.get("/api/me/").status_code == 200,
            "join token": joins(self.join_token),
            "password": Client().post("/login/", {"username": "eve", "password": "x"}).status_code == 302,
        }
        return [way for way, open_ in ways.items() if open_]


def joins(token: str) -> bool:
    body = {"join_token": token, "protocol": PROTOCOL, "name": "theirs", "facts": facts()}
    return Client().post("/agent/v1/enrol", body, content_type="application/json").status_code == 201


@pytest.fixture
def intruder(db: None) -> Intruder:
    return Intruder()


def post(api: APIClient, path: str, body: object = None) -> Any:
    return api.post(f"/api/{path}", {} if body is None else body, format="json")


def running_job(owner: User) -> tuple[FakeNode, Job]:
    node = world.fake_node()
    job = world.placed_job(node, owner=owner)
    node.run(node.take_up(), step(1))
    return node, job


def test_one_request_shuts_out_whoever_has_the_account_while_jobs_run(
    intruder: Intruder, admin_api: APIClient
) -> None:
    node, running = running_job(intruder.eve)
    queued, paused = world.job(intruder.eve), world.job(intruder.eve)
    pause_job(job=paused, actor=None, now=database_now())
    assert intruder.gets_in() == ["session", "token", "join token", "password"]
    answer = post(admin_api, f"users/user-{intruder.eve.pk}/deactivate/")
    assert (answer.status_code, answer.json()["active"]) == (200, False)
    assert intruder.gets_in() == []
    assert [world.state_of(job) for job in (queued, paused)] == ["cancelled", "cancelled"]
    assert (world.state_of(running), running.stop_for) == ("stopping", "cancel")
    [order] = node.orders.values()
    node.end(order, "stopped")
    assert world.state_of(running) == "cancelled"
    assert world.open_allocations() == 0
    assert running.events.get(stop_for="cancel").reason == "Its owner's account was deactivated."


def test_letting_someone_in_again_revives_nothing(intruder: Intruder, admin_api: APIClient) -> None:
    path = f"users/user-{intruder.eve.pk}/"
    post(admin_api, path + "deactivate/")
    assert post(admin_api, path + "activate/").json()["active"] is True
    assert intruder.gets_in() == ["password"]
    intruder.eve.refresh_from_db()
    intruder.session.force_login(intruder.eve)
    assert intruder.gets_in() == ["session", "password"]
    for verb in ("deactivate", "activate"):
        post(admin_api, f"{path}{verb}/")
    assert intruder.gets_in() == ["password"]
    reported = AuditEntry.objects.filter(action__regex="^(user|tokens|join tokens) ").order_by("pk")
    first = ["user locked out", "tokens revoked", "join tokens revoked", "user let in"]
    assert list(reported.values_list("action", flat=True)) == [*first, "user locked out", "user let in"]


def test_jobs_go_to_another_person_and_run_on(
    intruder: Intruder, admin_api: APIClient, person: User, api: APIClient
) -> None:
    node, running = running_job(intruder.eve)
    queued = world.job(intruder.eve)
    ended = world.job(intruder.eve)
    Job.objects.filter(pk=ended.pk).update(state="succeeded")
    path = f"users/user-{intruder.eve.pk}/deactivate/"
    for name in ("nobody", "eve"):
        refused = post(admin_api, path, {"hand_over_to": name})
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["hand_over_to"])
    assert len(intruder.gets_in()) == 4, "a request that is refused shuts nobody out"
    assert post(admin_api, path, {"hand_over_to": "ada"}).status_code == 200
    assert intruder.gets_in() == []
    assert [world.state_of(job) for job in (running, queued)] == ["running", "queued"]
    assert [job.owner for job in Job.objects.order_by("pk")] == [person, person, intruder.eve]
    assert running.events.last().type == "job.handed_over"
    assert running.version == running.events.count()
    assert {job["id"] for job in api.get("/api/jobs/").json()["data"]} == {running.pk, queued.pk}
    [order] = node.orders.values()
    node.end(order, "succeeded")
    assert world.state_of(running) == "succeeded"


def test_a_job_that_was_on_its_way_or_held_is_left_to_the_sweep(
    intruder: Intruder, admin_api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockouts, "AT_ONCE", 2)
    _, running = running_job(intruder.eve)
    jobs = [world.job(intruder.eve) for _ in range(3)]
    post(admin_api, f"users/user-{intruder.eve.pk}/deactivate/")
    assert (world.state_of(running), running.stop_for) == ("stopping", "cancel"), (
        "what holds GPUs comes first"
    )
    assert sorted(world.state_of(job) for job in jobs) == ["cancelled", "queued", "queued"]
    late = world.job(intruder.eve)
    sweep(database_now())
    sweep(database_now())
    assert {world.state_of(job) for job in [*jobs, late]} == {"cancelled"}


def test_a_request_on_its_way_makes_no_token_for_later(intruder: Intruder, admin_api: APIClient) -> None:
    """Its sender was known before the lock-out was."""
    before = User.objects.get(pk=intruder.eve.pk)
    post(admin_api, f"users/user-{intruder.eve.pk}/deactivate/")
    with pytest.raises(NotAllowed):
        create_token(owner=before, name="late", now=timezone.now())
    with pytest.raises(NotAllowed):
        create_join_token(actor=before, now=database_now())


def test_a_page_on_its_way_is_refused_like_any_other(
    browser: Client, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked_out_meanwhile(**values: Any) -> None:
        User.objects.filter(pk=person.pk).update(is_active=False)
        create_bound_token(**values)

    monkeypatch.setattr(tokens, "create_bound_token", locked_out_meanwhile)
    answer = browser.post("/tokens/", {"name": "late", "scope": "read", "days": ""})
    assert answer.status_code == 403
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(("body", "left"), [({}, []), ({"revoke_tokens": False}, ["token", "join token"])])
def test_a_new_password_ends_sessions_and_unless_asked_otherwise_tokens(
    intruder: Intruder, admin_api: APIClient, body: dict[str, bool], left: list[str]
) -> None:
    made = post(admin_api, f"users/user-{intruder.eve.pk}/password/", body)
    assert intruder.gets_in() == left
    intruder.eve.refresh_from_db()
    assert intruder.eve.check_password(made.json()["password"])


def test_people_end_their_own_tokens_with_their_password_unless_they_say_otherwise(
    browser: Client, person: User
) -> None:
    program, old = token_client(person), "x"
    for new, sent, expected in (("plum tree 77", {}, 200), ("pear tree 78", {"revoke_tokens": "on"}, 401)):
        values = {"old_password": old, "new_password1": new, "new_password2": new, **sent}
        assert browser.post("/password/", values)["Location"] == "/"
        assert program.get("/api/me/").status_code == expected
        old = new
    assert b'name="revoke_tokens" checked' in browser.get("/password/").content
    reported = AuditEntry.objects.exclude(action="token created").order_by("pk")
    assert list(reported.values_list("action", flat=True)) == ["password changed"] * 2 + ["tokens revoked"]


def test_administrators_see_and_end_tokens_of_others(intruder: Intruder, admin_api: APIClient) -> None:
    create_token(owner=intruder.eve, name="second", now=timezone.now(), scope=Scope.READ)
    path = f"users/user-{intruder.eve.pk}/tokens/"
    second, first = admin_api.get(f"/api/{path}").json()["data"]
    assert (second["name"], first["name"]) == ("second", "test")
    assert "digest" not in first
    assert admin_api.delete(f"/api/{path}{first['id']}/").status_code == 204
    assert intruder.program.get("/api/me/").status_code == 401
    mine = admin_api.get("/api/tokens/").json()["data"][0]["id"]
    assert admin_api.delete(f"/api/{path}{mine}/").status_code == 404, "it is not eve's"
    assert admin_api.delete(f"/api/{path}").status_code == 204
    assert not ApiToken.objects.filter(owner=intruder.eve, revoked_at=None).exists()
    assert not JoinToken.objects.filter(created_by=intruder.eve, expires_at__gt=database_now()).exists()
    assert intruder.gets_in() == ["session", "password"]


def test_the_page_shuts_out_and_hands_over(admin_browser: Client, person: User, intruder: Intruder) -> None:
    job = world.job(intruder.eve)
    path = f"/users/{intruder.eve.pk}/"
    page = admin_browser.get(path).content.decode()
    assert "1 unfinished job." in page
    refused = admin_browser.post(path + "deactivate/", {"hand_over_to": "nobody"})
    assert refused.status_code == 400
    assert b"There is no user with this name." in refused.content
    assert len(intruder.gets_in()) == 4
    shown = admin_browser.post(path + "deactivate/", {"hand_over_to": "ada"}, follow=True).content.decode()
    assert "Reactivate" in shown
    assert intruder.gets_in() == []
    assert Job.objects.get(pk=job.pk).owner == person


def test_the_page_lists_and_ends_tokens_of_others(admin_browser: Client, intruder: Intruder) -> None:
    path = f"/users/{intruder.eve.pk}/"
    token = ApiToken.objects.get()
    assert token.hint in admin_browser.get(path).content.decode()
    assert admin_browser.post(f"{path}tokens/{token.pk}/revoke/").status_code == 302
    assert intruder.gets_in() == ["session", "join token", "password"]
    admin_browser.post(path + "revoke/")
    assert intruder.gets_in() == ["session", "password"]
    admin_browser.post(path + "password/", {"revoke_tokens": "on"})
    assert intruder.gets_in() == []


def test_a_member_ends_nobody_elses_tokens(browser: Client, intruder: Intruder) -> None:
    token, path = ApiToken.objects.get(owner=intruder.eve), f"/users/{intruder.eve.pk}/"
    for verb in ("deactivate", "revoke", "password", f"tokens/{token.pk}/revoke"):
        assert browser.post(f"{path}{verb}/").status_code == 403
    assert len(intruder.gets_in()) == 4


@pytest.mark.django_db(transaction=True)
def test_no_token_that_is_made_meanwhile_outlives_the_end_of_all() -> None:
    eve, now, is_made = world.user("eve"), database_now(), threading.Event()
    leaked, _ = create_token(owner=eve, name="leaked", now=now)

    def make_another() -> None:
        with transaction.atomic():
            rotate_token(token=leaked, actor=eve, now=now)
            is_made.set()
            time.sleep(0.3)  # until the other one waits

    def end_all() -> None:
        is_made.wait(10)
        lockouts.revoke_all(user=eve, actor=eve, now=now)

    at_once(make_another, end_all)
    assert ApiToken.objects.count() == 2
    assert not ApiToken.objects.filter(revoked_at=None).exists()


def test_a_token_that_ends_while_it_asks_for_another_gets_none(intruder: Intruder) -> None:
    asking = ApiToken.objects.get(owner=intruder.eve)
    ApiToken.objects.update(revoked_at=database_now())
    with pytest.raises(NotAllowed, match="just ended"):
        create_token(owner=intruder.eve, name="x", now=database_now(), through=asking)


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_lock_each_other_out_leave_one() -> None:
    one, other = world.user("one", is_staff=True), world.user("other", is_staff=True)
    ready, refused = threading.Barrier(2), []

    def lock_out(user: User, actor: User) -> None:
        try:
            ready.wait(10)
            lockouts.lock_out(user=user, actor=actor, now=database_now())
        except NotAllowed:
            refused.append(actor)
        finally:
            connection.close()

    threads = [threading.Thread(target=lock_out, args=pair) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert User.objects.filter(is_active=True, is_staff=True).count() == 1
    assert len(refused) == 1
