"""Jobs that come after others, or begin later, through REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.harness import world

Body = Callable[..., dict[str, object]]


def submit(api: APIClient, body: dict[str, object]) -> Any:
    return api.post("/api/jobs/", body, format="json")


def test_a_job_says_what_it_comes_after_and_waits_for_it(api: APIClient, body: Body) -> None:
    world.fake_node(slots=2)
    first = submit(api, body()).json()
    after = [{"job": first["id"], "kind": "ended"}]
    second = submit(api, body(after=after)).json()
    assert second["after"] == [
        {"job": first["id"], "array": None, "kind": "ended", "state": "queued", "jobs": None}
    ]
    tick()
    answer = api.get(f"/api/jobs/{second['id']}/").json()
    assert answer["wait"] == {"code": "dependency", "text": f"It comes after {first['id']}."}
    assert answer["after"][0]["state"] == "queued"  # as people see a job that is assigned


def test_a_job_that_is_not_seen_any_more_keeps_its_state_to_itself(api: APIClient, body: Body) -> None:
    first = submit(api, body()).json()
    second = submit(api, body(after=[{"job": first["id"]}])).json()
    Job.objects.filter(pk=first["id"]).update(owner=world.user())
    answer = api.get(f"/api/jobs/{second['id']}/").json()["after"]
    assert answer == [{"job": first["id"], "array": None, "kind": "succeeded", "state": None, "jobs": None}]


def test_a_job_comes_after_a_whole_array(api: APIClient, body: Body) -> None:
    values = [{"seed": 1}, {"seed": 2}, {"seed": 3}]
    array = api.post("/api/arrays/", {**body(), "values": values}, format="json").json()
    one = array["jobs"][0]["id"]
    after = [{"array": array["id"]}, {"job": one, "kind": "ended"}]
    job = submit(api, body(after=after)).json()
    assert job["after"] == [
        {"job": None, "array": array["id"], "kind": "succeeded", "state": None, "jobs": {"queued": 3}},
        {"job": one, "array": None, "kind": "ended", "state": "queued", "jobs": None},
    ]
    tick()
    answer = api.get(f"/api/jobs/{job['id']}/").json()
    assert answer["wait"] == {"code": "dependency", "text": f"It comes after {array['id']}, {one}."}
    Job.objects.exclude(pk=job["id"]).update(owner=world.user())
    assert api.get(f"/api/jobs/{job['id']}/").json()["after"][0]["jobs"] == {}


def test_an_array_of_somebody_else_cannot_be_told_from_none(api: APIClient, body: Body) -> None:
    array = api.post("/api/arrays/", {**body(), "values": [{"seed": 1}, {"seed": 2}]}, format="json").json()
    Job.objects.update(owner=world.user("other"))
    wrong = {
        array["id"]: "is not the id of one of your arrays",
        "ftarray-none": "is not the id of one of your arrays",
        "a\x00b": "after.0.array: holds a NUL character; remove it",
    }
    for pk, text in wrong.items():
        answer = submit(api, body(after=[{"array": pk}]))
        assert answer.status_code == (400 if "\x00" in pk else 404)
        assert text in answer.content.decode()
    either = submit(api, body(after=[{"array": array["id"], "job": array["id"]}]))
    assert "name either a job or an array" in either.content.decode()
    as_job = submit(api, body(after=[{"job": array["id"]}]))
    assert "is not the id of one of your jobs" in as_job.content.decode()
    assert Job.objects.count() == 2


def test_success_is_the_usual_condition(api: APIClient, body: Body) -> None:
    first = submit(api, body()).json()
    answer = submit(api, body(after=[{"job": first["id"]}])).json()
    assert answer["after"][0]["kind"] == "succeeded"


def test_a_job_begins_later(api: APIClient, body: Body) -> None:
    world.fake_node()
    at = timezone.now() + timedelta(hours=1)
    job = submit(api, body(begin_at=at.isoformat())).json()
    tick()
    answer = api.get(f"/api/jobs/{job['id']}/").json()
    assert answer["wait"]["code"] == "begin-time"
    assert answer["begin_at"] == at.isoformat().replace("+00:00", "Z")


def test_a_job_of_somebody_else_cannot_be_told_from_none(api: APIClient, body: Body) -> None:
    theirs = world.job(world.user("other"))
    answers = [submit(api, body(after=[{"job": pk}])) for pk in (theirs.pk, "ftjob-none", "a\x00b")]
    assert [answer.status_code for answer in answers] == [404, 404, 400]
    assert answers[0].json()["error"]["code"] == "not_found"
    assert list(answers[0].json()["error"]["fields"]) == ["after.0.job"]
    texts = [answer.content.decode().replace(theirs.pk, "ftjob-none") for answer in answers]
    assert texts[0] == texts[1]
    assert "is not the id of one of your jobs" in texts[0]
    assert Job.objects.count() == 1


@pytest.mark.parametrize("at", ["0001-01-02T00:00:00Z", "1970-01-01T00:00:00-12:00", "2025-01-01T00:00:00Z"])
def test_a_time_to_begin_that_is_past_starts_the_job_at_once(api: APIClient, body: Body, at: str) -> None:
    world.fake_node()
    answer = submit(api, body(begin_at=at))
    assert answer.status_code == 201, answer.content
    (note,) = [note for note in answer.json()["notes"] if "time to begin" in note]
    assert note.endswith("was past when it was submitted: it may start at once.")
    assert tick().started == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("after", "ftjob-1"),
        ("after", [{"kind": "ended"}]),
        ("after", [{"array": 5}]),
        ("after", [{"job": 5}]),
        ("after", [{"job": "a", "kind": "began"}]),
        ("after", [{"job": "a", "unless": "b"}]),
        ("after", [{"job": "a"}] * 101),
        ("begin_at", "tomorrow"),
        ("begin_at", "2026-11-23T10:00:00"),
        ("begin_at", "9999-12-31T00:00:00Z"),
    ],
)
def test_bad_order_is_refused_at_its_field(api: APIClient, body: Body, field: str, value: object) -> None:
    answer = submit(api, body(**{field: value}))
    assert answer.status_code == 400, answer.content
    assert field in answer.content.decode()
    assert not Job.objects.exists()
