"""Guesses of passwords and tokens.

Wrong ones are counted by address, and hashing takes turns.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.accounts import hashing
from portal.accounts.errors import TooBusy
from portal.accounts.hashing import BoundedHasher
from portal.accounts.models import AuditEntry, User
from portal.limits.counters import count, count_up
from portal.limits.guesses import JOINING, SIGN_IN, TOKENS, network_of
from portal.turns import Turns, client_address
from tests.harness import world
from tests.harness.fake_node import PROTOCOL, facts

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


def sign_in(name: str, password: str = "wrong", address: str = "192.0.2.1") -> Any:
    return Client(REMOTE_ADDR=address).post("/login/", {"username": name, "password": password})


def test_many_names_from_one_address_are_locked_out_before_anything_is_hashed(
    person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.set_password("right")
    person.save()
    assert sign_in("name").status_code == 200
    for _ in range(SIGN_IN.most - 1):
        count_up("guess:sign-in:192.0.2.1", 900)
    monkeypatch.setattr(User, "check_password", None)  # a guess that comes so far fails
    with CaptureQueriesContext(connection) as queries:
        refused = sign_in("another")
    assert (refused.status_code, refused["Retry-After"], len(queries)) == (429, "900", 0)
    assert "failed attempts" in refused.content.decode()
    assert Client(REMOTE_ADDR="192.0.2.1").post("/admin/login/", {"username": "a"}).status_code == 429
    monkeypatch.undo()
    assert sign_in(person.username, "right", address="192.0.2.2").status_code == 302, "elsewhere all is well"
    assert Client(REMOTE_ADDR="192.0.2.1").get("/login/").status_code == 200


def test_who_signs_in_rightly_is_never_counted(person: User) -> None:
    person.set_password("right")
    person.save()
    assert {sign_in(person.username, "right").status_code for _ in range(5)} == {302}
    assert count("guess:sign-in:192.0.2.1") == 0


def test_who_forgot_a_password_locks_out_nobody_else_at_that_address(person: User) -> None:
    person.set_password("right")
    person.save()
    world.user("forgetful")
    answers = [sign_in("forgetful").status_code for _ in range(35)]
    assert answers[-1] == 429, "this name is locked there"
    for number in range(30):
        sign_in(f"typo{number}")
    assert sign_in(person.username, "right").status_code == 302


def test_sign_ins_stand_in_the_audit_record(person: User) -> None:
    person.set_password("right")
    person.save()
    sign_in(person.username, "right")
    sign_in(person.username, "hunter2")
    sign_in("my secret password")
    for _ in range(15):
        sign_in(person.username)
    entries = AuditEntry.objects.order_by("pk").values_list("action", "target", "actor_name", "address")
    who = f"user {person.username}"
    assert list(entries)[:3] == [
        ("signed in", who, person.username, "192.0.2.1"),
        ("sign-in failed", who, "", "192.0.2.1"),
        ("sign-in failed", "an unknown name", "", "192.0.2.1"),
    ]
    assert AuditEntry.objects.filter(action="sign-in locked").count() == 1
    assert AuditEntry.objects.filter(action="sign-in failed").count() <= 12
    written = str(list(AuditEntry.objects.values()))
    assert "hunter2" not in written
    assert "secret" not in written


def test_bad_tokens_are_429_and_good_ones_of_the_same_address_go_on(api: APIClient) -> None:
    bad = APIClient(headers={"Authorization": "Bearer ft-wrong"})
    answers = [bad.get("/api/me/") for _ in range(TOKENS.most + 2)]
    assert [answer.status_code for answer in answers] == [401] * TOKENS.most + [429] * 2
    assert (answers[-1].json()["error"]["code"], answers[-1]["Retry-After"]) == ("throttled", "60")
    assert APIClient().get("/api/jobs/").status_code == 429, "no token at all is counted as well"
    assert api.get("/api/me/").status_code == 200


def test_bad_node_tokens_are_429_and_other_nodes_of_the_same_address_go_on(client: Client) -> None:
    node = world.fake_node()
    answers = [
        client.post("/agent/v1/sync", headers={"authorization": f"Bearer fnode-{number}"}).status_code
        for number in range(TOKENS.most + 2)
    ]
    assert answers == [401] * TOKENS.most + [429] * 2
    assert AuditEntry.objects.filter(action="node token refused").count() == 1
    assert node.sync() is not None


def test_join_tokens_are_not_tried_one_after_the_other(client: Client) -> None:
    body = {"protocol": PROTOCOL, "join_token": "fjoin-wrong", "name": "n", "facts": facts()}

    def enrol() -> Any:
        return client.post("/agent/v1/enrol", body, content_type="application/json")

    assert {enrol().status_code for _ in range(JOINING.most)} == {401}
    with CaptureQueriesContext(connection) as queries:
        assert enrol().status_code == 429
    assert not queries


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
        ("no address" * 100, ("no address" * 100)[:64]),
    ],
)
def test_an_ipv6_network_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


def test_passwords_are_hashed_a_few_at_a_time_and_the_rest_hears_soon_that_it_is_busy() -> None:
    turns = Turns(at_once=2, waiting=1, patience_s=0.05, busy="later")
    running: list[int] = []
    most: list[int] = []
    busy: list[float] = []

    def hash_once() -> None:
        began = time.monotonic()
        try:
            with turns.take():
                running.append(1)
                most.append(len(running))
                time.sleep(0.3)
                running.pop()
        except TooBusy:
            busy.append(time.monotonic() - began)

    threads = [threading.Thread(target=hash_once) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 2
    assert len(busy) == 14
    with turns.take():
        assert True, "every turn was given back"


def test_a_sign_in_without_a_turn_is_503(
    person: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PASSWORD_HASHERS = ["portal.accounts.hashing.BoundedHasher"]
    monkeypatch.setattr(
        "portal.accounts.hashing.turns", Turns(at_once=1, waiting=0, patience_s=0, busy="later")
    )
    person.password = PBKDF2PasswordHasher().encode("right", "salt", 1000)
    person.save()
    assert BoundedHasher().verify("right", person.password), "hashes of before are still good"
    with hashing.turns.take():
        busy = Client(raise_request_exception=False).post(
            "/login/", {"username": person.username, "password": "right"}
        )
    assert (busy.status_code, busy["Retry-After"]) == (503, "5")
    assert sign_in(person.username, "right").status_code == 302


def test_a_crowd_at_one_address_leaves_places_to_others_who_come_first() -> None:
    turns = Turns(at_once=1, waiting=4, patience_s=30, busy="later")
    begun: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def work(address: str) -> None:
        with turns.take(address):
            begun.append(address)
            inside.set()
            go_on.wait()

    def send(address: str) -> threading.Thread:
        thread = threading.Thread(target=work, args=(address,))
        thread.start()
        return thread

    crowd = [send("crowd")]
    assert inside.wait(30)
    crowd += [send("crowd") for _ in range(2)]
    while turns.places("crowd") < 3:
        time.sleep(0.001)
    with pytest.raises(TooBusy), turns.take("crowd"):
        pass
    one = send("elsewhere")
    while not turns.places("elsewhere"):
        time.sleep(0.001)
    go_on.set()
    for thread in (*crowd, one):
        thread.join()
    assert begun == ["crowd", "elsewhere", "crowd", "crowd"]
    assert turns.places("crowd") == 0


def test_people_elsewhere_sign_in_while_one_address_guesses(
    person: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PASSWORD_HASHERS = ["portal.accounts.hashing.BoundedHasher"]
    monkeypatch.setattr(BoundedHasher, "iterations", 1000)
    monkeypatch.setattr(hashing, "turns", Turns(at_once=1, waiting=2, patience_s=30, busy="later"))
    person.set_password("right")
    person.save()
    enough, refused, encode = threading.Event(), threading.Event(), PBKDF2PasswordHasher.encode

    def slowly(*given: Any) -> str:
        time.sleep(0.05)
        return encode(*given)

    def guess() -> None:
        client_address.set("192.0.2.1")
        while not enough.is_set():
            try:
                BoundedHasher().encode("wrong", "salt")
            except TooBusy:
                refused.set()
                time.sleep(0.001)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", slowly)
    crowd = [threading.Thread(target=guess) for _ in range(6)]
    for thread in crowd:
        thread.start()
    try:
        assert refused.wait(30)
        form = {"username": person.username, "password": "right"}
        for _ in range(3):
            browser = Client(REMOTE_ADDR="192.0.2.2", raise_request_exception=False)
            assert browser.post("/login/", form).status_code == 302
    finally:
        enough.set()
        for thread in crowd:
            thread.join()
