"""Plans: what a person has seen of a recommendation is what is submitted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Team, User
from portal.clock import database_now
from scheduler.models import DatasetFile, Job, JobPlan, Node
from scheduler.services.jobs.plans import KEPT_FOR, MOST_KEPT, forget_old_plans
from tests.harness import world
from tests.portal.conftest import token_client

Body = Callable[..., dict[str, object]]


def plan(api: APIClient, body: dict[str, object]) -> Any:
    answer = api.post("/api/recommendations/", body, format="json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def submit(api: APIClient, body: dict[str, object], **headers: str) -> Any:
    return api.post("/api/jobs/", body, format="json", headers=headers)


def test_a_plan_is_submitted_as_it_was_seen(api: APIClient, body: Body) -> None:
    world.price_node(world.fake_node(), 2.0)
    earlier = submit(api, body()).json()["id"]
    asked = body(
        name="mine", params={"lora_r": 4}, metadata={"a": "b"}, priority="low", max_run_s=90_000,
        after=[{"job": earlier, "kind": "ended"}],
    )  # fmt: skip
    seen = plan(api, asked)
    assert len(seen["plan"]) == 40
    made = submit(api, {"plan": seen["plan"]}, **{"Idempotency-Key": "k"})
    assert made.status_code == 201, made.content
    job = made.json()
    assert job["params"] == seen["params"]
    assert job["promise"] == {name: seen["options"][0][name] for name in job["promise"]}
    assert {name: job[name] for name in ("name", "metadata", "priority", "max_run_s")} == {
        name: asked[name] for name in ("name", "metadata", "priority", "max_run_s")
    }
    assert [one["job"] for one in job["after"]] == [earlier]
    again = submit(api, {"plan": seen["plan"]}, **{"Idempotency-Key": "k"})
    assert (again.json()["id"], again["Idempotency-Replayed"]) == (job["id"], "true")
    assert Job.objects.count() == 2


def test_what_has_moved_within_the_interval_leaves_the_promise(api: APIClient, body: Body) -> None:
    world.price_node(world.fake_node(), 2.0)
    seen = plan(api, body())
    world.price_node(Node.objects.get(), 2.01)
    job = submit(api, {"plan": seen["plan"]}).json()
    assert job["promise"]["cost"] == seen["options"][0]["cost"]
    stored = Job.objects.get()
    assert [option["price_per_gpu_hour"] for option in stored.options] == [2.01] * len(stored.options)


@pytest.mark.parametrize(("event", "left"), [("price", ["cost"]), ("no node", None)])
def test_a_plan_that_does_not_hold_any_more_says_what_has_changed(
    event: str, left: list[str] | None, api: APIClient, body: Body
) -> None:
    node = world.fake_node()
    world.price_node(node, 2.0)
    seen = plan(api, body(params={"gpu_model": "cpu"}))
    if event == "price":
        world.price_node(Node.objects.get(), 9.0)
    else:
        Node.objects.get().gpus.update(gone_at=database_now())
    refused = submit(api, {"plan": seen["plan"]})
    assert refused.status_code == 409, refused.content
    error = refused.json()["error"]
    assert error["code"] == "plan_outdated"
    first = error["difference"][0]
    promised = {one["name"]: one["promised"] for one in error["difference"]}
    if left:
        assert list(promised) == left
        assert promised["cost"] == seen["options"][0]["cost"]
        assert first["now"] > first["promised"]["high"]
    else:
        assert first["now"] is None
    assert not Job.objects.exists()
    if left:
        assert submit(api, {"plan": plan(api, body())["plan"]}).status_code == 201


def test_only_its_owner_submits_a_plan_alone_within_a_day(
    api: APIClient, stranger: APIClient, body: Body
) -> None:
    own = plan(api, body())["plan"]
    not_yours = {"plan": "is not a plan of yours of the last 24 hours; ask for a new one"}
    for asker, name in ((stranger, own), (api, "plan-" + "0" * 35)):
        refused = submit(asker, {"plan": name})
        assert (refused.status_code, refused.json()["error"]["fields"]) == (400, not_yours)
    beside = submit(api, {"plan": own, "name": "x", "tpyo": 1})
    told = "stands in the plan already; leave it out, or leave out plan"
    assert (beside.status_code, beside.json()["error"]["fields"]) == (400, {"name": told, "tpyo": told})
    assert submit(api, {"plan": 7}).json()["error"]["fields"] == {"plan": "must be a text"}
    JobPlan.objects.update(made_at=database_now() - KEPT_FOR)
    assert submit(api, {"plan": own}).json()["error"]["fields"] == not_yours
    assert forget_old_plans(database_now()) == 1
    assert not Job.objects.exists()


def test_a_plan_is_no_way_around_the_team_of_a_token(api: APIClient, body: Body, person: User) -> None:
    """A token that reaches one team finds neither another's plan nor a file of its owner alone."""
    inner, outer = (Team.objects.create(name=name) for name in ("inner", "outer"))
    person.teams.add(inner, outer)
    bound = token_client(person, team=inner)
    refused = submit(bound, {"plan": plan(api, body(team=outer.name))["plan"]}).json()["error"]
    assert set(refused["fields"]) == {"training_file", "team"}
    DatasetFile.objects.update(team=inner)
    refused = submit(bound, {"plan": plan(api, body(team=outer.name))["plan"]}).json()["error"]
    assert set(refused["fields"]) == {"team"}
    made = submit(bound, {"plan": plan(api, body(team=inner.name))["plan"]})
    assert made.json()["team"]["name"] == "inner"


def test_a_plan_whose_file_is_gone_names_it(api: APIClient, body: Body) -> None:
    own = plan(api, body())["plan"]
    assert api.delete(f"/api/files/{body()['training_file']}/").status_code == 204
    refused = submit(api, {"plan": own}).json()["error"]
    assert refused["fields"] == {"training_file": "has been deleted; choose another one"}


def test_a_recommendation_refuses_what_no_job_could_be(api: APIClient, body: Body) -> None:
    late = (database_now() + timedelta(days=800)).isoformat()
    refused = api.post("/api/recommendations/", body(begin_at=late), format="json")
    assert refused.json()["error"]["fields"] == {"begin_at": "must lie within a year from now"}
    assert not JobPlan.objects.exists()


def test_the_oldest_of_very_many_plans_go(api: APIClient, body: Body) -> None:
    plan(api, body())
    kept = JobPlan.objects.get()
    before = kept.made_at - timedelta(minutes=1)
    rows = [JobPlan(owner=kept.owner, made_at=before, request={}, recommended={}) for _ in range(MOST_KEPT)]
    JobPlan.objects.bulk_create(rows)
    newest = plan(api, body())["plan"]
    assert JobPlan.objects.count() == MOST_KEPT
    assert {kept.pk, newest} <= set(JobPlan.objects.values_list("pk", flat=True))
