"""A change by PATCH changes what it names, and leaves everything else as it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Role, Scope, Team
from portal.clock import database_now
from scheduler.models import Node
from tests.harness import world
from tests.portal.conftest import token_client

POINTERS = ("seen", "version")  # they say what was read; nothing is set to them


def changeable() -> dict[str, dict[str, Any]]:
    """The fields that PATCH takes, by address."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    parts, taken = schema["components"]["schemas"], {}
    for address, operations in schema["paths"].items():
        if "patch" in operations:
            body = operations["patch"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            fields = parts[body.rpartition("/")[2]]["properties"]
            taken[address] = {name: fields[name] for name in fields if name not in POINTERS}
    return taken


def things(admin: APIClient) -> dict[str, dict[str, Any]]:
    """Objects without any value that a default would be, by their addresses, as names of their parts."""
    at = [(database_now() + timedelta(hours=hours)).isoformat() for hours in (10, 30)]
    ada, team = world.user("ada", email="ada@mail.example"), Team.objects.create(name="Linguists")
    Membership.objects.create(user=ada, team=team, role=Role.LEAD)
    market = admin.post(
        "/api/markets/",
        {"name": "east", "gpu_model": "cpu", "on_demand_price": 2.5, "gpus_per_node": 2, "max_nodes": 3,
         "changeover_s": 77, "mix": True},
        format="json",
    )  # fmt: skip
    node = world.fake_node()
    Node.objects.update(price_per_gpu_hour=1.5)
    job = token_client(ada).post(
        "/api/jobs/",
        {"model": "builtin/tiny-llama", "training_file": world.data_file(ada).pk, "goal": "deadline",
         "params": {"max_steps": 5}, "deadline_at": at[1], "budget": 50, "priority": "low",
         "preemptible": False, "max_run_s": 7777, "spot": "no", "topology": "best_effort",
         "topology_level": "numa", "metadata": {"key": "text"}},
        format="json",
    )  # fmt: skip
    window = admin.post(
        "/api/windows/",
        {"begins_at": at[0], "ends_at": at[1], "nodes": [node.node_id], "team": team.name, "note": "fans"},
        format="json",
    )
    policy = {"name": "sjf", "parameters": {"reserve": True}, "reason": "to try"}
    assert admin.patch("/api/policy/", policy, format="json").status_code == 200
    return {
        "/api/jobs/{job_id}/": {"job_id": job.json()["id"]},
        "/api/markets/{market_id}/": {"market_id": market.json()["id"]},
        "/api/nodes/{node_id}/": {"node_id": node.node_id},
        "/api/policy/": {},
        "/api/teams/{team_id}/": {"team_id": team.name},
        "/api/teams/{team_id}/members/{user_id}/": {"team_id": team.name, "user_id": "ada"},
        "/api/users/{user_id}/": {"user_id": "ada"},
        "/api/windows/{window_id}/": {"window_id": window.json()["id"]},
    }


def told(admin: APIClient, address: str, parts: dict[str, Any]) -> dict[str, Any]:
    """What is told of an object, as PATCH takes it."""
    whole = admin.get(address.partition("members/")[0].format(**parts)).json()
    if "members/" in address:
        [whole] = whole["members"]
    if "params" in whole:
        whole["params"] = {name: one["value"] for name, one in whole["params"].items() if one["by"] == "user"}
    return {name: _named(value) for name, value in whole.items()}


def _named(value: Any) -> Any:
    """Of another object its id."""
    return value["id"] if isinstance(value, dict) and value.keys() == {"id", "name"} else value


def test_a_change_of_one_field_leaves_all_others_as_they_are(db: None) -> None:
    admin = token_client(world.admin(), Scope.ADMIN)
    made, fields = things(admin), changeable()
    assert made.keys() == fields.keys()
    for address, parts in made.items():
        for name in fields[address]:
            before = told(admin, address, parts)
            if address == "/api/policy/" and name == "reason":
                before["reason"] = "another one"
            value = not before[name] if isinstance(before[name], bool) else before[name]
            answer = admin.patch(address.format(**parts), {name: value}, format="json")
            assert answer.status_code == 200, (address, name, answer.content)
            after = told(admin, address, parts)
            others = [other for other in fields[address] if other in after and other != name]
            assert {o: after[o] for o in others} == {o: before[o] for o in others}, (address, name)
