"""Earlier jobs like one: the reader's own and their teams', with how they ended."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.models import Attempt, Job
from scheduler.selectors.analysis.similar_jobs import facts_of_job, similar_jobs
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step

pytestmark = pytest.mark.django_db


def ended(node: FakeNode, owner: User, outcome: str = "succeeded", **values: object) -> Job:
    job = world.placed_job(node, owner=owner, training_file=world.data_file(owner), **values)
    order = node.take_up()
    node.run(order, step(3))
    node.end(order, outcome, result())
    job.refresh_from_db()
    return job


@pytest.fixture
def node() -> FakeNode:
    return world.fake_node()


def test_the_page_and_rest_show_earlier_jobs(
    person: User, browser: Client, api: APIClient, node: FakeNode
) -> None:
    first = ended(node, person, name="first", params={"lora_r": 8})
    second = ended(node, person, name="second", params={"learning_rate": 1e-5})
    rows = api.get(f"/api/jobs/{second.pk}/similar/").json()["data"]
    assert [row["id"] for row in rows] == [first.pk]
    assert (rows[0]["state"], [one["name"] for one in rows[0]["differs"]]) == ("succeeded", ["learning_rate"])
    assert rows[0]["duration_s"] is not None
    page = browser.get(f"/jobs/{second.pk}/?tab=parameters").content.decode()
    assert "Similar jobs" in page
    assert f'href="{first.get_absolute_url()}"' in page
    file = second.training_file_id
    new = browser.get("/jobs/new/advice/", {"model": second.model, "training_file": file}).content.decode()
    assert "2 of these 2 jobs had as much to do on such GPUs, succeeded and took" in new
    sent = {"command": f"python t.py --model_name_or_path {second.model} --learning_rate 1e-5"}
    assert "Similar jobs" in browser.post("/jobs/import/", sent).content.decode()


def test_jobs_that_had_more_to_do_differ_and_their_durations_are_not_summed_up(
    person: User, browser: Client, api: APIClient, node: FakeNode
) -> None:
    file = world.data_file(person, rows=40)
    first = ended(node, person, params={"epochs": 4})
    second = ended(node, person, params={"epochs": 4})
    longer = ended(node, person, params={"epochs": 1})
    rows = api.get(f"/api/jobs/{longer.pk}/similar/").json()["data"]
    for row in rows:
        differs = {one["name"]: (one["here"], one["there"]) for one in row["differs"]}
        assert differs["epochs"] == (1, 4)
        assert differs["steps"][1] > differs["steps"][0]
    assert {row["id"] for row in rows} == {first.pk, second.pk}
    page = browser.get(f"/jobs/{longer.pk}/?tab=parameters").content.decode()
    assert "Similar jobs" in page
    assert "had as much to do" not in page
    same = browser.get(f"/jobs/{second.pk}/?tab=parameters").content.decode()
    assert "had as much to do" not in same  # one alone is no span
    asked = {"model": longer.model, "training_file": file.pk, "params-epochs": "2"}
    new = browser.get("/jobs/new/advice/", asked).content.decode()
    assert "Epochs 4 instead of 2" in new
    assert "had as much to do" not in new


def test_only_jobs_that_the_reader_sees_are_offered(person: User, node: FakeNode) -> None:
    other = world.user("eve")
    theirs = ended(node, other)
    own = ended(node, person)
    facts = facts_of_job(own)
    assert similar_jobs(person, facts, database_now(), but=own.pk).jobs == []
    team = Team.objects.create(name="both")
    for one in (person, other):
        Membership.objects.create(team=team, user=one)
    Job.objects.filter(pk=theirs.pk).update(team=team)
    reader = User.objects.get(pk=person.pk)
    assert [one.job.pk for one in similar_jobs(reader, facts, database_now(), but=own.pk).jobs] == [theirs.pk]


def test_neighbours_count_where_they_were_closer_than_the_predictor(person: User, node: FakeNode) -> None:
    """Every run took three times what was promised: neighbours know that, the predictor does not."""
    jobs = [ended(node, person) for _ in range(4)]
    for job in jobs:
        promise = {**(job.promise or {}), "duration_s": {"value": 100.0, "low": 90.0, "high": 110.0}}
        Job.objects.filter(pk=job.pk).update(promise=promise)
    for attempt in Attempt.objects.all():
        Attempt.objects.filter(pk=attempt.pk).update(created_at=attempt.ended_at - timedelta(seconds=300))
    reported = similar_jobs(person, facts_of_job(jobs[0]), database_now(), predicted_s=200.0).by_neighbours
    assert reported is not None
    assert reported.seconds == pytest.approx(600.0)
    assert reported.error == pytest.approx(0.0)
    assert reported.predictors_error == pytest.approx(2 / 3)  # 100 s promised, 300 s taken
    assert reported.is_better
