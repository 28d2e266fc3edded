"""The list of jobs: what it is narrowed down to, in which order, and many jobs by the same filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from portal.accounts.models import Team, User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, JobArray
from tests.harness import world
from tests.portal.conftest import Program, token_client

NAMES = "abcdef"
NOW = database_now


@pytest.fixture
def mate(person: User) -> User:
    """Of the same team."""
    mate = world.user("mate")
    Team.objects.create(name="vision").members.add(person, mate)
    return mate


@pytest.fixture
def jobs(person: User, mate: User) -> dict[str, Job]:
    """Six jobs, each of another kind, an hour apart; `a` is the oldest and runs."""
    node = world.fake_node(name="box", slots=1)
    made = {name: world.job(owner=person, name=name) for name in NAMES}
    tick()
    assert Job.objects.get(pk=made["a"].pk).state == "assigned", node
    now, rows = NOW(), Job.objects
    for hours, (name, job) in enumerate(reversed(made.items())):
        at = now - timedelta(hours=hours)
        rows.filter(pk=job.pk).update(submitted_at=at, shown_since=at, metadata={"of": name, "odd key": "x"})
    change = lambda name, **values: rows.filter(pk=made[name].pk).update(**values)  # noqa: E731
    change("b", owner=mate, team=Team.objects.get(), model="other/model")
    array = JobArray.objects.create(owner=person, submitted_at=now)
    change("c", array=array, state="succeeded", ended_at=now - timedelta(minutes=3))
    change("d", state="failed", ended_at=now - timedelta(minutes=1), shown_since=now + timedelta(hours=1))
    change("e", state="paused")
    for name in NAMES:
        made[name].refresh_from_db()
    return made


def found(api: APIClient, query: Any) -> str:
    """The names of the jobs of all pieces, of two each."""
    names, after = "", {}
    while True:
        answer = api.get("/api/jobs/", {**query, "limit": 2, **after})
        assert answer.status_code == 200, answer.content
        piece = answer.json()
        names += "".join(job["name"] for job in piece["data"])
        if not piece["has_more"]:
            assert piece["total"] == len(names)
            return names
        after = {"after": piece["next"]}


def test_a_list_is_narrowed_down_and_ordered(
    api: Program, jobs: dict[str, Job], mate: User, person: User
) -> None:
    b, c = jobs["b"], jobs["c"]
    team, hour = b.team, timedelta(hours=1)
    assert team is not None
    at = lambda job: job.submitted_at.isoformat()  # noqa: E731
    wanted = [
        ({}, "fedcba"),
        ({"state": "paused"}, "e"),
        ({"state": ["failed", "paused"]}, "ed"),
        ({"state": "live"}, "feba"),
        ({"state": ["live", "failed"]}, "fedba"),
        ({"owner": "me"}, "fedca"),
        ({"owner": "mate"}, "b"),
        ({"owner": f"user-{mate.pk}"}, "b"),
        ({"owner": "nobody"}, ""),
        ({"team": "vision"}, "b"),
        ({"team": f"team-{team.pk}", "owner": "me"}, ""),
        ({"array": c.array_id}, "c"),
        ({"node": "box"}, "a"),
        ({"node": jobs["a"].attempts.get().claims.get().node_id}, "a"),
        ({"node": "elsewhere"}, ""),
        ({"name": "d"}, "d"),
        ({"model": "other/model"}, "b"),
        ({"training_file": jobs["a"].training_file_id}, "a"),
        ({"metadata[of]": "e"}, "e"),
        ({"metadata[of]": "e", "metadata[odd key]": "y"}, ""),
        ({"metadata[odd key]": "x", "state": "failed"}, "d"),
        ({"submitted_after": at(b), "submitted_before": at(jobs["d"])}, "cb"),
        ({"ended_after": (NOW() - hour).isoformat()}, "dc"),
        ({"ended_before": c.ended_at.isoformat() if c.ended_at else ""}, ""),
        ({"order": "submitted_at"}, "abcdef"),
        ({"order": "-submitted_at", "state": "live"}, "feba"),
        ({"order": "-ended_at"}, "dcfeba"),
        ({"order": "ended_at"}, "cdabef"),
        ({"order": "-state_since"}, "dfecba"),
        ({"order": "state_since", "owner": "me"}, "acefd"),
    ]
    assert [(query, found(api, query)) for query, _ in wanted] == wanted


def test_what_is_no_filter_is_refused_by_name(api: Program, jobs: dict[str, Job]) -> None:
    for query, field in (
        ({"stat": "queued"}, "stat"),
        ({"state": "done"}, "state"),
        ({"state": ["queued", "done"]}, "state"),
        ({"owner": ["a", "b"]}, "owner"),
        ({"owner": ""}, "owner"),
        ({"name": "x" * 301}, "name"),
        ({"order": "name"}, "order"),
        ({"submitted_after": "yesterday"}, "submitted_after"),
        ({"submitted_after": "2026-01-01T00:00:00"}, "submitted_after"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata[]": "x"}, "metadata[]"),
        ({f"metadata[{'k' * 65}]": "x"}, f"metadata[{'k' * 65}]"[:50]),
        ({"metadata[of]": "x" * 513}, "metadata[of]"),
        ({"metadata[of]": ["a", "b"]}, "metadata[of]"),
        ({"metadata[of]": "a\x00"}, "metadata[of]"),
        ({"metadata[a\x00]": "b"}, "metadata[a\x00]"),
        ({"fields": ""}, "fields"),
        ({"fields": "id,"}, "fields"),
    ):
        refused = api.get("/api/jobs/", query)
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field]), query


def test_filters_and_orders_cost_a_constant_number_of_queries(
    api: Program, jobs: dict[str, Job], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for query in (
        {"node": "box"},
        {"owner": "me", "order": "-ended_at"},
        {"metadata[of]": "e", "team": "vision"},
    ):
        with django_assert_max_num_queries(9):
            api.get("/api/jobs/", query)


def test_jobs_are_cancelled_by_a_filter_if_they_are_as_many_as_was_said(
    api: Program, stranger: Program, jobs: dict[str, Job]
) -> None:
    def cancel(client: APIClient, count: object, **selected: object) -> Any:
        sent = {"filter": selected, "confirm_count": count}
        return client.post("/api/jobs/cancel/", sent, format="json")

    refused = cancel(api, 5, owner="me")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    assert "selects 3 jobs" in refused.json()["error"]["message"]
    assert cancel(stranger, 0, name="f").json()["data"] == []
    assert Job.objects.filter(state="cancelled").count() == 0
    assert cancel(api, 0, metadata={"a\nb": "x"}).json()["data"] == []
    answer = cancel(api, 3, owner="me", state=["live", "failed"], metadata={"odd key": "x"}).json()
    assert [(one["id"], one["outcome"]) for one in answer["data"]] == [
        (jobs["a"].pk, "stopping"),
        (jobs["e"].pk, "cancelled"),
        (jobs["f"].pk, "cancelled"),
    ]
    for selected, field in (
        ({"stat": "live"}, "filter.stat"),
        ({"owner": 7}, "filter.owner"),
        ({"owner": ["me"]}, "filter.owner"),
        ({"state": "done"}, "filter.state"),
        *(
            ({"metadata": pairs}, "filter.metadata")
            for pairs in ({"of": 1}, {"k" * 65: "x"}, {"": "x"}, {}, None)
        ),
        ({}, "filter"),
    ):
        refused = cancel(api, 1, **selected)
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field]), selected
    mine = {"filter": {"owner": "me"}}
    for sent, field in (
        (mine, "confirm_count"),
        ({"ids": ["x"], "confirm_count": 1}, "confirm_count"),
        ({"ids": ["x"], "confirm_count": 1, **mine}, "ids"),
        ({}, "ids"),
    ):
        refused = api.post("/api/jobs/cancel/", sent, format="json")
        assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field]), sent


def test_the_arrays_of_which_one_sees_a_job_are_listed(api: Program, stranger: Program, mate: User) -> None:
    files = {"model": "builtin/tiny-llama", "training_file": world.data_file(mate).pk, "team": "vision"}
    seeds = [{"seed": 1}, {"seed": 2}]
    submit = lambda: token_client(mate).post("/api/arrays/", {**files, "values": seeds}, format="json").json()  # noqa: E731
    first, second = submit(), submit()
    listed = api.get("/api/arrays/", {"limit": 1}).json()
    assert (listed["total"], [one["id"] for one in listed["data"]]) == (2, [second["id"]])
    assert listed["data"][0]["owner"]["name"] == "mate"
    assert listed["data"][0]["states"] == {"queued": 2}
    rest = api.get("/api/arrays/", {"after": listed["next"]}).json()
    assert [one["id"] for one in rest["data"]] == [first["id"]]
    assert stranger.get("/api/arrays/").json()["data"] == []
