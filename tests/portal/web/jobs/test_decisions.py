"""Why a job runs where it runs, and why it waits: its page and REST say the same, to whom may see it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Decision, DecisionJob, Job
from tests.harness import world
from tests.harness.preempting import preempting


def page_of(browser: Client, job: Job) -> str:
    answer = browser.get(f"/jobs/{job.pk}/?tab=decisions")
    assert answer.status_code == 200
    return answer.content.decode()


def decisions(api: APIClient, job: Job, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(f"/api/jobs/{job.pk}/decisions/", query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def test_a_started_job_says_why_there_why_then_and_what_else_was_weighed(
    browser: Client, api: APIClient, person: User
) -> None:
    world.fake_node(name="gpu-box", slots=2)
    job = world.job(person)
    other = world.job(world.user(), params={"number_gpus": 2})
    tick()
    (start,) = decisions(api, job)
    assert (start["verb"], start["code"], start["policy"]) == ("start", "", "easy")
    assert start["id"] == Decision.objects.get().pk
    assert start["here"].startswith("Given ")
    assert " on gpu-box: the best of its options by its goal, balanced." in start["here"]
    assert start["now"].startswith("It had waited for ")
    assert "Of 2 jobs that waited then, 1 started." in start["now"]
    assert "Under the policy easy, jobs are ordered by: submission;" in start["now"]
    fates = {option["gpus"]: (option["fate"], option["score"]) for option in start["options"]}
    assert {1, 2} == set(fates)
    assert sorted(fate for fate, _ in fates.values()) == ["chosen", "passed"]
    assert min(score for _, score in fates.values()) == 1.0
    shown = page_of(browser, job)
    assert start["here"] in shown
    assert "<strong>chosen</strong>" in shown
    assert "there was room</td>" in shown
    assert 'hx-get="/jobs' not in shown[shown.index('id="tab"') :]  # what was opened stays open
    assert other.pk not in shown + str(start)


def test_a_waiting_job_says_what_it_lacks(browser: Client, api: APIClient, person: User) -> None:
    world.fake_node(slots=2)
    first = world.job(person, params={"number_gpus": 2})
    tick()
    job = world.job(person, params={"number_gpus": 2})
    tick()
    (waits,) = decisions(api, job)
    assert (waits["verb"], waits["code"]) == ("wait", "busy")
    assert waits["here"] == Job.objects.get(pk=job.pk).wait_text
    (option,) = waits["options"]
    assert (option["fate"], option["free"], option["lacks"]) == ("full", 0, 2)
    shown = page_of(browser, job)
    assert "Waiting: other jobs hold the GPUs" in shown
    assert "0 of 2 free" in shown
    assert first.pk not in shown


def test_a_stopped_job_does_not_learn_for_whom(
    browser: Client, api: APIClient, person: User, settings: Any
) -> None:
    settings.POLICY = "las"
    turn = preempting(victim_of=person, taker_of=world.user("somebody"))
    stopped = decisions(api, turn.victim)[0]
    assert stopped["verb"] == "preempt"
    assert stopped["here"].startswith("A job that goes first needs its GPUs")
    shown = page_of(browser, turn.victim) + str(decisions(api, turn.victim))
    assert turn.taker.pk not in shown
    assert "somebody" not in shown


def test_only_those_see_decisions_who_see_the_job(browser: Client, api: APIClient) -> None:
    world.fake_node()
    job = world.job(world.user())
    tick()
    assert DecisionJob.objects.filter(job=job).exists()
    assert browser.get(f"/jobs/{job.pk}/tabs/decisions/").status_code == 404
    assert api.get(f"/api/jobs/{job.pk}/decisions/").status_code == 404


def test_a_record_that_cannot_be_read_says_so_and_hides_no_other(
    browser: Client, api: APIClient, person: User
) -> None:
    job = world.job(person)
    tick()
    world.fake_node()
    refresh_options()
    tick()
    oldest = Decision.objects.order_by("pk")[0]
    Decision.objects.filter(pk=oldest.pk).update(plan=b"odd")
    start, unreadable = decisions(api, job)
    assert (start["verb"], unreadable["verb"]) == ("start", "wait")
    assert unreadable["unreadable"].startswith("It is damaged")
    assert unreadable["options"] == []
    assert "This decision cannot be explained. It is damaged" in page_of(browser, job)


def test_decisions_come_in_pages(api: APIClient, person: User) -> None:
    job = world.job(person)
    tick()
    row = DecisionJob.objects.select_related("decision").get(job=job)
    for _ in range(4):
        decision = row.decision
        decision.pk = None
        decision.save()
        DecisionJob.objects.create(decision=decision, job=job, verb=row.verb, code=row.code)
    first = api.get(f"/api/jobs/{job.pk}/decisions/", {"limit": 2}).json()
    assert (len(first["data"]), first["total"], first["has_more"]) == (2, 5, True)
    rest = decisions(api, job, after=first["next"], limit=100)
    assert len(rest) == 3
    assert {one["id"] for one in rest}.isdisjoint({one["id"] for one in first["data"]})
    assert api.get(f"/api/jobs/{job.pk}/decisions/", {"after": "x"}).status_code == 400


@pytest.mark.one_database
def test_a_job_without_decisions_says_when_one_is_kept(browser: Client, person: User) -> None:
    assert "None is kept." in page_of(browser, world.job(person))
