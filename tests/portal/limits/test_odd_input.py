"""Odd text in every part of every address and in its query: no 5xx.

The parameters that a page reads are found by asking it once, those of the API stand in its
schema. Databases refuse different texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import cycle, islice
from typing import Any

import pytest
from django.core.cache import caches
from django.http import QueryDict
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from portal.accounts.models import Scope
from tests.harness import world
from tests.harness.sampling import mostly_on_demand
from tests.portal.conftest import token_client
from tests.portal.limits.test_addresses import filled, routes

pytestmark = pytest.mark.django_db
LONG = "x" * 100_000
PARTS = ("a%00b", "%ED%A0%80", "%2e%2e%2f", "%F0%9F%98%80", "9" * 400, LONG, "random%2F" * 1000, "-1")
VALUES = ("%00", "%ED%A0%80", "9" * 400, LONG, "-1", "NaN", "1e999")
LOOKUPS = ("__getitem__", "__contains__", "get", "getlist")
Ask = Callable[[str], Any]


@pytest.fixture
def ask() -> Ask:
    """Asks as an administrator, by session or token; addresses of nodes as a node."""
    admin = world.admin()
    client = Client(raise_request_exception=False)
    client.force_login(admin)
    program = token_client(admin, Scope.ADMIN).authorization
    tokens = {"/api/": program, "/agent/": f"Bearer {world.fake_node().token}", "/metrics": program}

    def asking(address: str) -> Any:
        for store in caches.all():
            store.clear()  # an address that asks this often has to wait
        token = next((token for begin, token in tokens.items() if address.startswith(begin)), None)
        return client.get(address, headers={"authorization": token} if token else {})

    return asking


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names that anything looks for in a query."""
    names: set[str] = set()

    def noting(method: str) -> Callable[..., Any]:
        original = getattr(QueryDict, method)

        def lookup(self: QueryDict, name: str | None, *rest: Any) -> Any:
            if name is not None:  # REST framework looks for a format although none is set
                names.add(name)
            return original(self, name, *rest)

        return lookup

    for method in LOOKUPS:
        monkeypatch.setattr(QueryDict, method, noting(method))
    return names


@pytest.mark.two_databases
@pytest.mark.parametrize(
    "part", mostly_on_demand(PARTS, ["a%00b", "%ED%A0%80", "9" * 400]), ids=lambda part: part[:10]
)
def test_no_odd_part_of_an_address_is_our_mistake(ask: Ask, part: str) -> None:
    statuses = {route: ask(filled(route, part)).status_code for route in routes() if "<" in route}
    assert {route: status for route, status in statuses.items() if status >= 500} == {}
    if "%00" in part:
        assert {route: status for route, status in statuses.items() if status != 404} == {}


@cache
def schema_paths() -> dict[str, Any]:
    return dict(SchemaGenerator().get_schema(request=None, public=True)["paths"])


def in_the_schema(route: str) -> set[str]:
    """Names of the query parameters that the schema has for an address of the API."""
    path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
    answer = schema_paths().get(path, {}).get("get", {})
    return {one["name"] for one in answer.get("parameters", []) if one["in"] == "query"}


@pytest.mark.postgresql
@pytest.mark.parametrize("tried", [1, pytest.param(len(VALUES), marks=pytest.mark.slow)])
def test_no_odd_value_in_a_query_is_our_mistake(ask: Ask, looked_for: set[str], tried: int) -> None:
    """Each parameter meets the next of the values, on demand all of them."""
    values = cycle(VALUES)
    job = world.placed_job(world.fake_node(name="other"), owner=world.user("ada"))
    failed, statuses = [], Counter[int]()
    for route in routes():
        address = filled(route, str(job.pk) if "job_id" in route else "1")
        looked_for.clear()
        ask(address)
        for name in sorted(looked_for | in_the_schema(route)):
            for value in islice(values, tried):
                status = ask(f"{address}?{name}={value}").status_code
                statuses[status] += 1
                if status >= 500:
                    failed.append(f"{route}?{name}={value[:10]}")
    assert not failed
    often = 100 * tried / len(VALUES)
    assert min(statuses[200], statuses[400]) > often, "the addresses look for more than that"
