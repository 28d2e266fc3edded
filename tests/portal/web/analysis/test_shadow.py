"""A policy on probation through the page and REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, User
from portal.clock import database_now
from scheduler.loop.predict.shadow import bring_up_to_date
from scheduler.models import Node, ShadowPolicy
from tests.harness import world

pytestmark = pytest.mark.django_db


def test_an_administrator_puts_a_policy_on_probation_compares_and_ends_it(
    browser: Client, admin: User
) -> None:
    world.fake_node(slots=1)
    assert b"Put on probation" in browser.get("/policy/").content
    browser.post("/policy/shadow/", {"name": "sjf", "reason": "shorter waits?"})
    bring_up_to_date(database_now())
    world.job()
    later = database_now() + timedelta(seconds=90)
    Node.objects.update(last_seen_at=later)
    bring_up_to_date(later)
    page = browser.get("/policy/").content.decode()
    assert "Jobs started, of 1" in page
    assert "sjf would start 1 of these jobs more than a minute earlier, and 0 later." in page
    assert "shorter waits?" in page
    browser.post("/policy/shadow/end/")
    assert ShadowPolicy.objects.get().ended_at is not None
    page = browser.get("/policy/").content.decode()
    assert "Put on probation" in page
    assert "Jobs started, of 1" in page  # its figures stay
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"policy put on probation", "probation ended"} <= actions


def test_the_page_names_what_it_refuses(browser: Client, admin: User) -> None:
    refused = browser.post("/policy/shadow/", {"name": "pollux"}, follow=True).content.decode()
    assert "Policy on probation: Select a valid choice" in refused
    browser.post("/policy/shadow/", {"name": "sjf"})
    refused = browser.post("/policy/shadow/", {"name": "fair"}, follow=True).content.decode()
    assert "End its probation first" in refused


def test_people_who_may_not_choose_do_not_see_it(browser: Client) -> None:
    assert b"On probation" not in browser.get("/policy/").content
    assert browser.post("/policy/shadow/", {"name": "sjf"}).status_code == 403


def test_programs_do_the_same_with_parameters(admin_api: APIClient) -> None:
    address = "/api/policy/shadow/"
    assert admin_api.get(address).json() == {"current": None, "past": []}
    refused = admin_api.post(address, {"name": "pollux"}, format="json")
    assert (refused.status_code, "simulator only" in refused.content.decode()) == (400, True)
    sent = {"name": "srtf", "parameters": {"min_run_s": 5.0}}
    made = admin_api.post(address, sent, format="json")
    assert made.status_code == 201
    assert made.json()["current"]["parameters"]["min_run_s"] == 5.0
    assert admin_api.post(address, {"name": "sjf"}, format="json").status_code == 409
    assert admin_api.delete(address).status_code == 204
    assert admin_api.get(address).json()["past"][0]["policy"] == "srtf"
