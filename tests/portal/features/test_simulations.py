"""Simulations through the interfaces of administrators: REST and pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.models import Simulation
from scheduler.services.simulations.play import play_next
from tests.harness import world
from tests.portal.conftest import rows_of_a_module
from tests.scheduler.analysis.past import past

BODY = {"policies": ["fifo", "sjf"], "knowledge": "performance"}
URL = "/api/simulations/"


@pytest.fixture(scope="module")
def ran(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Three jobs that ran on a node with two slots."""
    with rows_of_a_module(django_db_blocker):
        past(world.fake_node(), [600, 300, 30], ended=timezone.now())
        yield


@pytest.fixture
def admin_browser(db: None) -> Client:
    client = Client()
    client.force_login(world.admin())
    return client


def test_a_program_asks_waits_and_reads_the_figures(ran: None, admin_api: APIClient) -> None:
    made = admin_api.post(URL, BODY, format="json")
    assert (made.status_code, made.json()["state"], made.json()["cluster"]) == (201, "queued", "cpu:1x2")
    while play_next(now=database_now):
        pass
    done = admin_api.get(f"{URL}{made.json()['id']}/").json()
    assert (done["state"], [one["policy"] for one in done["results"]]) == ("done", ["fifo", "sjf"])
    assert {"jct_mean_s", "load", "jain", "finish_time_fairness_mean", "violation_ratio"} <= set(
        done["results"][0]
    )
    [listed] = admin_api.get(URL).json()["data"]
    assert (listed["id"], "results" in listed) == (done["id"], False)
    assert admin_api.get(f"{URL}sim-none/").status_code == 404


def test_the_same_key_and_body_ask_once(ran: None, admin_api: APIClient) -> None:
    answers = [admin_api.post(URL, BODY, format="json", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    other = admin_api.post(URL, BODY | {"seed": 1}, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert (other.status_code, Simulation.objects.count()) == (422, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"policies": "fifo"}, {"policies": ["none"]}, {"knowledge": "all"}, {"seed": 1.0}, {"error": -1},
     {"cluster": "a100"}, {"since": "yesterday"}, {"since": "2999-01-01T00:00Z"}, {"speed": 2}],
)  # fmt: skip
def test_a_wrong_value_is_named(wrong: dict[str, object], ran: None, admin_api: APIClient) -> None:
    refused = admin_api.post(URL, BODY | wrong, format="json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, list(wrong))
    assert not Simulation.objects.exists()


def test_too_short_a_past_is_said_in_words(admin_api: APIClient) -> None:
    long_ago = {"cluster": "cpu:1x1", "until": "2000-01-01T00:00Z"}
    refused = admin_api.post(URL, BODY | long_ago, format="json")
    assert refused.json()["error"]["fields"] == {
        "since": "only 0 jobs of this range ran to the end; a simulation needs 3"
    }


def test_the_page_asks_and_shows_what_is_simulated(ran: None, admin_browser: Client) -> None:
    page = admin_browser.get("/simulations/")
    assert b"cpu:1x2" in page.content
    form = {"policies": ["fifo", "sjf"], "knowledge": "oracle", "key": "form-1"}
    sent = [admin_browser.post("/simulations/", form)["Location"] for _ in range(2)]
    assert sent[0] == sent[1], "a double click asks once"
    assert b"0 of 2 policies simulated" in admin_browser.get(sent[0]).content
    play_next(now=database_now)
    part = admin_browser.get(sent[0], headers={"HX-Request": "true"})
    assert b"1 of 2 policies simulated" in part.content
    assert "HX-Refresh" not in part.headers
    play_next(now=database_now)
    assert admin_browser.get(sent[0], headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    shown = admin_browser.get(sent[0]).content.decode()
    assert "Simulated: " in shown
    assert "Every figure on this page is simulated" in shown
    assert "<div>1 × 2 cpu</div>" in shown
    assert "Finish-time fairness" in shown
    assert sent[0] in admin_browser.get("/simulations/", headers={"HX-Request": "true"}).content.decode()


def test_jobs_that_were_left_out_are_told_with_the_reasons(
    ran: None, admin_browser: Client, admin_api: APIClient
) -> None:
    made = admin_api.post(URL, BODY, format="json").json()
    while play_next(now=database_now):
        pass
    done = Simulation.objects.get(pk=made["id"])
    assert admin_api.get(f"{URL}{done.pk}/").json()["left_out"] == 0
    done.results[-1]["refused"], done.refusals = 67, [["ftjob-x", "needs 8 L40S GPUs on 1 node"]]
    done.as_it_was = False
    done.save()
    assert admin_api.get(f"{URL}{done.pk}/").json()["left_out"] == 67
    shown = admin_browser.get(done.get_absolute_url()).content.decode()
    assert "67 jobs of this range were left out of every figure" in shown
    assert "Jobs left out: 67" in shown
    assert "The first 1:" in shown
    assert "ftjob-x: needs 8 L40S GPUs on 1 node" in shown


def test_a_refused_form_keeps_its_values_and_says_why(ran: None, admin_browser: Client) -> None:
    form = {"policies": ["fifo"], "knowledge": "oracle", "cluster": "eight"}
    refused = admin_browser.post("/simulations/", form)
    assert refused.status_code == 400
    assert b"is not MODEL:NODESxGPUS" in refused.content
    assert b'value="eight"' in refused.content
    assert b'value="fifo" checked' in refused.content
    none = admin_browser.post("/simulations/", {"knowledge": "oracle"})
    assert b"Choose at least one policy" in none.content


def test_pages_are_for_administrators(browser: Client, person: User) -> None:
    assert browser.get("/simulations/").status_code == 403
    assert browser.get("/simulations/sim-1/").status_code == 403
    assert b"/simulations/" not in browser.get("/jobs/").content
