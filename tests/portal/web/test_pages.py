"""Rules of every page: who gets in, and what a page costs."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from knowledge.catalogue.portal_catalogue import forget_entries
from portal.accounts.models import User
from portal.http import error_pages
from tests.harness import world

pytestmark = pytest.mark.two_databases
MAX_QUERIES = 12


def test_signing_in_and_out(client: Client, person: User) -> None:
    wrong = client.post("/login/", {"username": "ada", "password": "no"})
    assert b"The name or the password is wrong" in wrong.content
    assert client.post("/login/", {"username": "ada", "password": "x"})["Location"] == "/"
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/jobs/").status_code == 302


def test_ten_wrong_passwords_lock_the_address(client: Client, person: User) -> None:
    answers = [client.post("/login/", {"username": "ada", "password": "no"}) for _ in range(11)]
    assert answers[-1].status_code == 429


@pytest.mark.parametrize("path", ["/jobs/new/", "/jobs/ftjob-x/cancel/", "/nodes/join-token/"])
def test_a_form_without_its_csrf_token_is_refused_in_words(path: str, person: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    answer = client.post(path, {})
    assert answer.status_code == 403
    assert b"This form has expired" in answer.content
    assert b'class="navbar-nav nav-pages"' in answer.content


def test_what_a_role_does_not_allow_names_who_can_allow_it(browser: Client) -> None:
    answer = browser.get("/audit/")
    assert answer.status_code == 403
    assert b"an administrator can allow it" in answer.content


def queries_of(client: Client, path: str) -> int:
    """With the catalogue's, which a process repeats only every few seconds."""
    from django.db import connection

    forget_entries()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200, path
    return len(queries)


def test_pages_cost_the_same_few_queries_however_many_rows_there_are(browser: Client, person: User) -> None:
    first = world.placed_job(world.fake_node(slots=4), owner=person, params={"number_gpus": 1})
    paths = ["/", "/jobs/", "/jobs/new/", "/nodes/", *(f"/jobs/{first.pk}/?tab={tab}" for tab in TABS)]
    browser.get("/")  # the first visit writes down that there was one
    few = {path: queries_of(browser, path) for path in paths}
    for _ in range(3):
        world.placed_job(world.fake_node(slots=1), owner=person, params={"number_gpus": 1})
    for _ in range(3):
        world.job(person)
    assert {path: queries_of(browser, path) for path in paths} == few
    assert max(few.values()) <= MAX_QUERIES, few


TABS = ("overview", "log", "parameters", "attempts", "events", "repeat")


def test_addresses_of_nothing_are_answered_in_words(browser: Client) -> None:
    answer = browser.get("/jobs/ftjob-none/")
    assert answer.status_code == 404
    assert b"belongs to someone else" in answer.content


@pytest.mark.parametrize("path", ["/nowhere/", "/jobs/ftjob-none/", "/audit/"])
def test_a_refusal_keeps_the_navigation_of_who_signed_in(path: str, browser: Client) -> None:
    page = browser.get(path).content.decode()
    assert 'href="/jobs/"' in page
    assert "Sign out" in page
    assert "Sign out" not in Client().get("/nowhere/").content.decode()


@pytest.mark.parametrize("status", [500, 503])
def test_the_page_of_a_fault_needs_no_database(status: int, rf: RequestFactory) -> None:
    answer = error_pages.answer(rf.get("/jobs/"), status)  # no fixture opens the database for this test
    assert answer.status_code == status
    assert b"Please try again" in answer.content
