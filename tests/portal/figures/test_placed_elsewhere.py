"""A job that is placed elsewhere than promised says so, and each promise is judged under its own name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Interval, Option
from portal.accounts.models import User
from portal.clock import database_now
from portal.events.models import Event
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.track_record import latest_pairs, verdicts
from scheduler.selectors.figures.promise import comparison, comparison_with_submission
from tests.harness import world
from tests.harness.fake_node import FakeNode, result
from tests.knowledge.conftest import promised

pytestmark = pytest.mark.django_db
SHORTEST, LONGEST = 1000.0, 1900.0  # of the promise at submission, seconds; the test's run is over in less


def elsewhere() -> Option:
    """Eight A100: the test's node has none."""
    promise = promised(100.0, 50.0, 200.0)
    config = replace(promise.config, gpu_model="A100-SXM4-80GB", number_gpus=8)
    return replace(promise, config=config, duration_s=Interval(1380.0, SHORTEST, LONGEST))


def ended_job(promise: Option | None, owner: User | None = None, node: FakeNode | None = None) -> Job:
    node, job = node or world.fake_node(), world.job(owner)
    if promise:
        Job.objects.filter(pk=job.pk).update(promise=option_json(promise))
    assert tick().started == 1
    node.sync()
    node.end(node.take_up(), "succeeded", result(tokens_per_s=150.0))
    return Job.objects.get(pk=job.pk)


def test_each_promise_is_judged_under_its_own_name() -> None:
    job, now = ended_job(elsewhere()), database_now()
    at_submission = {line.name: line for line in comparison_with_submission(job, None, now)}
    for_placement = {line.name: line for line in comparison(job, None, now)}
    assert at_submission["duration_s"].inside is False
    assert at_submission["tokens_per_second"].inside is True, "150 within 50 to 200"
    assert at_submission["duration_s"].actual == for_placement["duration_s"].actual
    assert for_placement["duration_s"].value != at_submission["duration_s"].value


def test_a_job_says_at_its_start_that_it_is_placed_elsewhere(
    browser: Client, api: APIClient, person: User
) -> None:
    job = ended_job(elsewhere(), person)
    start = Event.objects.get(subject=job.pk, data__has_key="option")
    assert "promised at submission were 8 × A100-SXM4-80GB and 23 min" in start.reason
    page = browser.get(f"/jobs/{job.pk}/tabs/overview/").content.decode()
    assert "Placed elsewhere than promised" in page
    assert "Promised at submission" in page
    answer = api.get(f"/api/jobs/{job.pk}/").json()
    assert {line["name"] for line in answer["submission_comparison"]} >= {"duration_s", "tokens_per_second"}


def test_the_predictions_page_counts_both_apart(browser: Client, person: User) -> None:
    node = world.fake_node()
    ended_job(elsewhere(), person, node)
    ended_job(None, person, node)
    now = database_now()
    period = Period(now - timedelta(hours=1), now + timedelta(hours=1))
    _, at_submission = latest_pairs(person, period)
    assert {verdict.runs for verdict in at_submission} == {1}
    assert sum(one.runs for one in verdicts(person, period) if one.target == "duration_s") == 2
    assert {verdict.inside for verdict in at_submission if verdict.target == "duration_s"} == {0}
    page = browser.get("/analytics/predictions/?range=all").content.decode()
    assert "Jobs placed elsewhere than promised" in page


def test_a_job_placed_as_promised_has_one_promise(browser: Client, api: APIClient, person: User) -> None:
    job = ended_job(None, person)
    assert "promised at submission" not in Event.objects.get(subject=job.pk, data__has_key="option").reason
    assert "Placed elsewhere" not in browser.get(f"/jobs/{job.pk}/tabs/overview/").content.decode()
    assert api.get(f"/api/jobs/{job.pk}/").json()["submission_comparison"] == []
