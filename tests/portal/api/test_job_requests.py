"""`jobs/ID/request/`: a job's body, which submits it once more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal.accounts.models import Team, User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.client.test_commands import answers_schema
from tests.harness import fake_node, world
from trainer.recipes import RECIPES

Body = Callable[..., dict[str, object]]


def submit(api: APIClient, body: Any) -> Any:
    answer = api.post("/api/jobs/", body, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def request_of(api: APIClient, job: str, **query: str) -> Any:
    answer = api.get(f"/api/jobs/{job}/request/", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_request_is_told_as_it_was_made(api: APIClient, body: Body, person: User) -> None:
    team = Team.objects.create(name="ethics")
    team.members.add(person)
    later = (database_now() + timedelta(days=2)).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    earlier = submit(api, body())
    asked = body(
        name="mine", params={"lora_r": 4}, metadata={"a": "b"}, priority="low", max_run_s=90_000,
        team="ethics", after=[{"job": earlier["id"], "kind": "ended"}], goal="deadline", deadline_at=later,
        retries=2, preemptible=False, validation_file=world.data_file(person, rows=9).pk,
    )  # fmt: skip
    job = submit(api, asked)
    told = request_of(api, job["id"])
    assert told == asked
    answers_schema(SchemaGenerator().get_schema(public=True), "JobRequestOut", told)
    assert request_of(api, earlier["id"]) == body()
    Job.objects.update(deadline_at=database_now() - timedelta(days=1))
    over = request_of(api, job["id"])
    assert over == {name: value for name, value in asked.items() if name not in ("goal", "deadline_at")}
    submit(api, over)


@pytest.mark.parametrize("fixed", [{}, {"tuning": "full"}, {"max_steps": 3, "number_gpus": 2}])
def test_a_resolved_request_fixes_all_that_was_chosen(
    fixed: dict[str, Any], api: APIClient, body: Body
) -> None:
    node = world.fake_node(slots=2)
    job = submit(api, body(params=fixed))
    told = request_of(api, job["id"], resolved="true")
    chosen = {name: one["value"] for name, one in job["params"].items() if one["value"] is not None}
    assert told == body(params=chosen)
    assert chosen.keys() <= RECIPES["sft"].params.keys()
    again = submit(api, told)
    assert {name: one["value"] for name, one in again["params"].items() if one["value"] is not None} == chosen
    tick()
    node.end(node.take_up(), "succeeded", fake_node.result())
    assert request_of(api, job["id"], resolved="true") == told


def test_others_see_no_request(stranger: APIClient, api: APIClient, body: Body) -> None:
    job = submit(api, body())
    assert stranger.get(f"/api/jobs/{job['id']}/request/").status_code == 404
    refused = api.get(f"/api/jobs/{job['id']}/request/", {"resolved": "maybe"})
    assert list(refused.json()["error"]["fields"]) == ["resolved"]
