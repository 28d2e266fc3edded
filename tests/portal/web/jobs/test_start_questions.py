"""When a job would start that is not submitted: asked, answered in a worker, told to one person."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from portal.events.models import Event
from scheduler.loop.predict.start_questions import answer_next
from scheduler.loop.tick import tick
from scheduler.models import DatasetFile, Job, StartForecast, StartQuestion
from scheduler.services.deletions import delete_file
from scheduler.services.forecasts.questions import KEPT_FOR, MOST_OPEN, forget_start_questions
from tests.harness import world

pytestmark = pytest.mark.django_db
Body = Callable[..., dict[str, Any]]
ADDRESS = "/api/recommendations/start/"


@pytest.fixture
def busy(person: User) -> Job:
    """A job that holds the only GPU."""
    world.fake_node(slots=1)
    job = world.job(person)
    tick()
    return job


def asked(client: APIClient, body: dict[str, Any]) -> Any:
    answer = client.post(ADDRESS, body, format="json")
    assert answer.status_code == 202
    assert answer["Location"] == answer.json()["address"]
    return answer.json()


def test_a_program_asks_and_is_answered_by_the_worker(api: APIClient, body: Body, busy: Job) -> None:
    question = asked(api, body())
    assert (question["stage"], question["expected"]) == ("computing", None)
    assert answer_next(now=database_now)
    answer = api.get(question["address"]).json()
    assert (answer["stage"], answer["trouble"]) == ("answered", "")
    assert (
        answer["expected"]["start_low"] <= answer["expected"]["start_at"] <= answer["expected"]["start_high"]
    )
    assert answer["expected"]["start_at"] > answer["expected"]["made_at"]  # the GPU is held
    assert answer["expected"]["start_at"] < answer["expected"]["end_at"]
    assert answer_next(now=database_now) is None


def test_nothing_of_the_job_remains(api: APIClient, body: Body, busy: Job) -> None:
    asked(api, body(after=[{"job": busy.pk}]))
    answer_next(now=database_now)
    assert Job.objects.get() == busy
    assert not Event.objects.filter(number__isnull=False).exclude(subject=busy.pk).exists()
    assert not StartForecast.objects.exists()


def test_a_free_gpu_is_taken_at_once(api: APIClient, body: Body) -> None:
    world.fake_node(slots=1)
    question = asked(api, body())
    answer_next(now=database_now)
    answer = api.get(question["address"]).json()["expected"]
    assert answer["start_at"] <= answer["made_at"]


def test_a_job_that_no_node_could_run_has_no_start(api: APIClient, body: Body) -> None:
    question = asked(api, body())
    answer_next(now=database_now)
    answer = api.get(question["address"]).json()
    assert (answer["expected"], answer["trouble"]) == (None, "No registered node could run the job.")


def test_what_is_gone_meanwhile_is_told(api: APIClient, body: Body, data_file: DatasetFile) -> None:
    question = asked(api, body())
    delete_file(file=data_file, actor=data_file.owner, now=database_now())
    answer_next(now=database_now)
    assert "training_file: has been deleted" in api.get(question["address"]).json()["trouble"]


def test_a_question_that_cannot_be_answered_says_so_and_the_next_one_is_taken(
    api: APIClient, body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fake_node(slots=1)
    first, second = asked(api, body()), asked(api, body(params={"epochs": 2}))
    with monkeypatch.context() as broken:
        broken.setattr("scheduler.loop.predict.start_questions.play_input", lambda now: 1 / 0)
        assert answer_next(now=database_now)
    response = api.get(first["address"]).json()
    assert (response["stage"], response["expected"]) == ("answered", None)
    assert "internal error" in response["trouble"]
    assert answer_next(now=database_now)
    assert api.get(second["address"]).json()["expected"]


def test_bad_values_are_refused_at_once(api: APIClient, body: Body) -> None:
    assert api.post(ADDRESS, body(params={"epochs": -1}), format="json").status_code == 400
    late = (database_now() - timedelta(hours=1)).isoformat()
    refused = api.post(ADDRESS, body(deadline_at=late), format="json")
    assert (refused.status_code, "future" in str(refused.json())) == (400, True)
    assert not StartQuestion.objects.exists()


def test_only_the_person_who_asked_is_answered(api: APIClient, stranger: APIClient, body: Body) -> None:
    question = asked(api, body())
    assert stranger.get(question["address"]).status_code == 404
    assert api.get(f"{ADDRESS}start-none/").status_code == 404


def test_questions_are_few_and_do_not_last(api: APIClient, body: Body) -> None:
    first = asked(api, body())
    assert asked(api, body())["id"] == first["id"]
    for epochs in range(1, MOST_OPEN + 1):
        asked(api, body(params={"epochs": epochs}))
    assert StartQuestion.objects.count() == MOST_OPEN
    assert api.get(first["address"]).status_code == 404
    assert forget_start_questions(database_now() + KEPT_FOR + timedelta(minutes=1)) == MOST_OPEN


def test_without_a_worker_it_says_so(api: APIClient, body: Body) -> None:
    question = asked(api, body())
    StartQuestion.objects.update(asked_at=database_now() - timedelta(minutes=3))
    answer = api.get(question["address"]).json()
    assert answer["stage"] == "unavailable"
    assert "No worker of the queue predict" in answer["trouble"]
    assert answer_next(now=database_now) is None  # nobody waits for it any more


def test_the_form_asks_and_polls_until_the_answer_is_there(
    browser: Client, data_file: DatasetFile, busy: Job
) -> None:
    values = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "goal": "balanced"}
    advice = browser.get("/jobs/new/advice/", values).content.decode()
    assert 'hx-post="/jobs/new/start/"' in advice
    waits = browser.post("/jobs/new/start/", values).content.decode()
    (address,) = re.findall(r'hx-get="([^"]+)" hx-trigger="every 1s"', waits)
    assert "is being computed" in browser.get(address).content.decode()
    answer_next(now=database_now)
    answer = browser.get(address).content.decode()
    assert "Submitted now: it starts about" in answer
    assert "and ends about" in answer
    StartQuestion.objects.update(answered_at=database_now() - timedelta(minutes=5))
    old = browser.get(address).content.decode()
    assert "out of date" in old
    assert "hx-get" not in old


def test_a_form_with_mistakes_asks_nothing(browser: Client, data_file: DatasetFile) -> None:
    values = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "budget": "-3"}
    assert "once all values are correct" in browser.post("/jobs/new/start/", values).content.decode()
    assert not StartQuestion.objects.exists()
