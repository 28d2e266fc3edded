"""A failed job says why, shows the line, and offers the form that mends it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from knowledge.reading.logs.questions import LONGEST_QUESTION, QUESTIONS
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.sweeps import sweep
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Failure, Job, LogQuestion
from scheduler.selectors.analysis.log_excerpts import excerpt_of
from scheduler.services.explanations.failures import is_any_unexplained, keep_causes
from tests.harness import fake_node, world
from tests.harness.fake_node import FakeNode

LOG = (
    "loading\nstep 1/9  loss 2.1000  90 tokens/s\n",
    'Traceback (most recent call last):\n  File "x.py", line 1\nRuntimeError: CUDA out of',
    " memory. Tried <b>hard</b>\n",
)
LINE = "RuntimeError: CUDA out of memory. Tried <b>hard</b>"


def failed(person: User, *logs: str, outcome: str = "error", reason: str = "", **params: object) -> Job:
    node: FakeNode = world.fake_node()
    job = world.job(person, params=params)
    tick()
    order = node.take_up()
    node.run(order, fake_node.step(3), *({"kind": "log", "body": {"text": log}} for log in logs))
    node.end(order, outcome, reason=reason)
    job.refresh_from_db()
    assert job.state == "failed"
    return job


def test_the_page_tells_the_cause_and_leads_to_its_line(browser: Client, person: User) -> None:
    job = failed(person, *LOG)
    page = browser.get(f"/jobs/{job.pk}/").content.decode()
    assert "The training needed more main memory than its node gives it." in page
    assert f'href="/jobs/{job.pk}/?tab=log&amp;line=5">Line 5 of the log</a>' in page
    assert "Tried &lt;b&gt;hard&lt;/b&gt;" in page
    shown = browser.get(f"/jobs/{job.pk}/?tab=log&line=5")
    assert (5, LINE) in shown.context["around"]
    assert "The log has no line 900" in browser.get(f"/jobs/{job.pk}/?tab=log&line=900").content.decode()


def test_the_button_opens_the_form_with_the_remedy(browser: Client, person: User) -> None:
    job = failed(
        person, reason="The loss after step 3, or its gradient, is not a finite number.", learning_rate=2e-4
    )
    path = f"/jobs/new/?from={job.pk}&remedy=1"
    assert path.replace("&", "&amp;") in browser.get(f"/jobs/{job.pk}/").content.decode()
    form = browser.get(path).context["form"]
    assert form["params-learning_rate"].value() == 5e-5
    assert form["params-learning_rate"].help_text.startswith("Changed: The loss became infinite")
    assert form["model"].value() == job.model
    unchanged = browser.get(f"/jobs/new/?from={job.pk}").context["form"]
    assert unchanged["params-learning_rate"].value() == 2e-4


def test_a_reason_of_our_own_trainer_has_its_cause_and_remedy(person: User, api: APIClient) -> None:
    job = failed(person, reason="The tuning qlora needs a GPU; choose lora to train on CPU slots.")
    answer = api.get(f"/api/jobs/{job.pk}/failure/").json()["failure"]
    assert answer["cause"] == "unfit-settings"
    assert "says what to choose instead" in answer["remedy"]


def test_a_bad_file_is_to_be_replaced(browser: Client, person: User) -> None:
    job = failed(person, reason="train.jsonl cannot be used: line 3: prompt is missing")
    path = f"/jobs/new/?from={job.pk}&remedy=1"
    form = browser.get(path).context["form"]
    assert not form["training_file"].value()
    assert "(line 3). Choose or upload a corrected file." in browser.get(path).content.decode()


def test_a_job_that_has_not_failed_has_no_remedy(browser: Client, person: User) -> None:
    job = world.job(person)
    form = browser.get(f"/jobs/new/?from={job.pk}&remedy=1").context["form"]
    assert form["model"].value() == job.model


def test_programs_are_told_the_changes(api: APIClient, person: User) -> None:
    assert api.get(f"/api/jobs/{world.job(person).pk}/failure/").json() == {"failure": None}
    answer = api.get(f"/api/jobs/{failed(person, *LOG, per_device_batch_size=4).pk}/failure/").json()[
        "failure"
    ]
    assert answer["line"] == {"number": 5, "text": LINE}
    assert (answer["cause"], answer["failure_class"]) == ("host-memory", "resource")
    assert answer["changes"] == {"per_device_batch_size": 2}


def test_lines_are_numbered_over_all_attempts(person: User) -> None:
    job = failed(person, "one\ntwo\r", "\nthree\rfour", "\n\nsix")
    lines = excerpt_of(job.attempts.get()).lines
    assert [(line.number, line.text.strip()) for line in lines] == [
        (1, "one"), (2, "two"), (3, "three"), (4, "four"), (6, "six")
    ]  # fmt: skip


def test_the_log_is_asked_on_its_tab(browser: Client, person: User) -> None:
    job = failed(person, *LOG)
    page = browser.get(f"/jobs/{job.pk}/?tab=log&ask=how+far").content.decode()
    assert "It came to step 1 of 9, 11 %." in page
    assert '<a class="alert-link" href="?tab=log&amp;line=2">Line 2</a>' in page
    assert "No rule understands" in browser.get(f"/jobs/{job.pk}/?tab=log&ask=weather").content.decode()


@pytest.mark.parametrize("length", [301, 9_999, 10_000, 10_001, 1_000_000])
def test_a_long_question_is_refused_at_its_field_and_not_kept(
    browser: Client, api: APIClient, person: User, length: int
) -> None:
    job = failed(person, *LOG)
    question = ("why did it fail " * (length // 16 + 1))[:length]
    page = browser.get(f"/jobs/{job.pk}/", {"tab": "log", "ask": question})
    assert page.status_code == 200
    assert "at most 300 characters" in page.content.decode()
    answer = api.get(f"/api/jobs/{job.pk}/questions/", {"q": question})
    assert answer.status_code == 400
    assert "300 characters" in str(answer.json()["error"]["fields"]["q"])
    assert not LogQuestion.objects.exists()


def test_a_question_as_long_as_may_be_is_answered_and_kept(
    browser: Client, api: APIClient, person: User
) -> None:
    job = failed(person, *LOG)
    question = "how far" + " " * 286 + "is it??"
    assert len(question) == LONGEST_QUESTION
    assert api.get(f"/api/jobs/{job.pk}/questions/", {"q": question}).json()["topic"] == "progress"
    page = browser.get(f"/jobs/{job.pk}/", {"tab": "log", "ask": question})
    assert "It came to step 1 of 9, 11 %." in page.content.decode()
    assert [row.question for row in LogQuestion.objects.all()] == [question]


BINARY = bytes(range(1, 256)) * 40


def test_a_training_that_writes_no_text_can_still_be_asked(
    browser: Client, api: APIClient, person: User
) -> None:
    pieces = [BINARY.decode("utf-8", errors="replace"), BINARY.decode("latin-1"), LOG[0]]
    job = failed(person, *pieces)
    for question in QUESTIONS:
        assert api.get(f"/api/jobs/{job.pk}/questions/", {"q": question}).json()["text"]
    page = browser.get(f"/jobs/{job.pk}/", {"tab": "log", "ask": "how far is it?"})
    assert "It came to step 1 of 9, 11 %." in page.content.decode()
    number = page.context["answer"].lines[0].number
    assert (number, "step 1/9  loss 2.1000  90 tokens/s") in browser.get(
        f"/jobs/{job.pk}/", {"tab": "log", "line": number}
    ).context["around"]


def test_programs_ask_the_log(api: APIClient, person: User) -> None:
    path = f"/api/jobs/{failed(person, *LOG).pk}/questions/"
    assert api.get(path, {"q": "why did it fail"}).json() == {
        "topic": "failure",
        "text": "The training needed more main memory than its node gives it. "
        "Use a node with more main memory, or a smaller model.",
        "lines": [{"number": 5, "text": LINE}],
    }
    assert api.get(path, {"q": "when does it end"}).json()["text"] == "It has ended: it has failed."
    assert api.get(path).status_code == api.get(path, {"q": "x" * 301}).status_code == 400


def explained_in_background() -> None:
    """As if the failures had happened a while ago, when the worker looks."""
    Attempt.objects.update(ended_at=database_now() - timedelta(seconds=10))
    keep_causes(database_now())


def test_causes_are_kept_and_counted(browser: Client, api: APIClient, person: User) -> None:
    job = failed(person, *LOG)
    assert api.get("/api/failures/").json()["causes"][0]["cause"] == ""
    explained_in_background()
    assert not is_any_unexplained(database_now())
    (row,) = Failure.objects.all()
    assert row.lines == [{"number": 5, "text": LINE}]
    answer = api.get("/api/failures/").json()
    assert answer["causes"] == [
        {"cause": "host-memory", "failure_class": "resource", "outcome": "error", "attempts": 1}
    ]
    assert answer["failed_jobs"] == {job.failure_class: 1}
    assert api.get(f"/api/jobs/{job.pk}/?include=attempts").json()["attempts"][0]["cause"] == "host-memory"
    page = browser.get(f"/jobs/{job.pk}/?tab=attempts").content.decode()
    assert "The training needed more main memory" in page
    assert "1 attempt failed, most of them for: host memory." in browser.get("/analytics/").content.decode()


def test_strangers_failures_are_not_counted(stranger: APIClient, person: User) -> None:
    failed(person, *LOG)
    assert stranger.get("/api/failures/").json()["causes"] == []


def test_an_unknown_cause_shows_lines_that_good_runs_do_not_have(
    browser: Client, api: APIClient, person: User
) -> None:
    node = world.fake_node()
    ends = {"succeeded": "loading\nsaved\n", "error": "loading\nthe flux capacitor hums\n"}
    for outcome, log in ends.items():
        job = world.job(person)
        tick()
        order = node.take_up()
        node.run(order, fake_node.step(3), {"kind": "log", "body": {"text": log}})
        node.end(order, outcome)
    answer = api.get(f"/api/jobs/{job.pk}/failure/").json()["failure"]
    assert answer["cause"] == "unknown"
    assert answer["line"] is None
    assert "the flux capacitor hums" in [line["text"].strip() for line in answer["unusual"]]
    assert "flux capacitor" in browser.get(f"/jobs/{job.pk}/").content.decode()


def test_questions_are_kept_for_a_while(browser: Client, api: APIClient, person: User) -> None:
    job = failed(person, *LOG)
    path = f"/api/jobs/{job.pk}/questions/"
    for question in ("how far", "how far", "the weather"):
        api.get(path, {"q": question})
    assert list(LogQuestion.objects.values_list("question", "topic")) == [
        ("the weather", ""), ("how far", "progress"),
    ]  # fmt: skip
    api.get(path, {"q": "how fast"})
    page = browser.get(f"/jobs/{job.pk}/?tab=log&ask=why").content.decode()
    assert "Asked before" in page
    assert "?tab=log&amp;ask=how%20fast" in page
    sweep(database_now() + timedelta(days=91))
    assert not LogQuestion.objects.exists()
