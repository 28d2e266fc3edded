"""Changes at the same moment that begin from the same answer."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Scope, Team
from scheduler.models import Market, PolicyChoice
from tests.harness import world
from tests.harness.threads import at_once
from tests.portal.conftest import token_client


@pytest.mark.two_databases
@pytest.mark.django_db(transaction=True)
def test_of_changes_that_begin_from_one_answer_one_is_made() -> None:
    """A row, a row that others change too, and what is no row."""
    program = token_client(world.admin(), Scope.ADMIN)
    team = Team.objects.create(name="Linguists")
    market = Market.objects.create(name="m", gpu_model="cpu", on_demand_price=1.0, created_at=team.created_at)
    changes: dict[str, tuple[str, list[dict[str, Any]]]] = {
        f"/api/teams/team-{team.pk}/": ("patch", [{"name": f"name {number}"} for number in range(6)]),
        f"/api/markets/mkt-{market.pk}/": ("patch", [{"max_nodes": 2 + number} for number in range(6)]),
        "/api/policy/": ("patch", [{"name": name} for name in ("sjf", "srtf", "sjf", "srtf")]),
        "/api/limits/": ("put", [{"gpus": 2 + number} for number in range(6)]),
    }

    def change(address: str, verb: str, body: dict[str, Any], tag: str) -> Any:
        client = APIClient(raise_request_exception=False)
        client.credentials(HTTP_AUTHORIZATION=program.authorization, HTTP_IF_MATCH=tag)
        return getattr(client, verb)(address, body, format="json")

    for address, (verb, bodies) in changes.items():
        tag = program.get(address)["ETag"]
        calls = [lambda a=address, v=verb, b=body, t=tag: change(a, v, b, t) for body in bodies]
        answers = at_once(*calls)
        assert sorted(answer.status_code for answer in answers) == [200] + [412] * (len(bodies) - 1), address
        made = next(answer for answer in answers if answer.status_code == 200)
        assert made.json() == program.get(address).json()
    assert PolicyChoice.objects.count() == 1
