"""Every address with every method and odd values in its query: never a 5xx."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from portal.accounts.models import Scope
from tests.harness import world
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db
METHODS = ("OPTIONS", "POST", "PATCH", "ODD")
# Values that pages and lists take in their query, and some that none of them can use.
NAMES = """q state gpu node model after before limit offset from training_file validation_file source learnt
since until period owner team user kind action actor page order days name place step format"""
ODD = ("%00", "9" * 400)
NOT_READY = "readyz"  # answers 503 on purpose


def routes() -> list[str]:
    """Return every address as Django knows it, e.g. `api/jobs/<str:job_id>/`.

    The administration is left out, as it is Django's own.
    """

    def below(patterns: Any, prefix: str) -> Iterator[str]:
        for entry in patterns:
            here = prefix + str(entry.pattern)
            if isinstance(entry, URLResolver):
                yield from below(entry.url_patterns, here)
            elif isinstance(entry, URLPattern):
                yield here

    found = sorted(set(below(get_resolver().url_patterns, "")))
    return [route for route in found if not route.startswith(("admin/", NOT_READY)) and "(" not in route]


def filled(route: str, part: str) -> str:
    return "/" + re.sub(r"<[^>]+>", lambda _: part, route)


@pytest.fixture
def client() -> Client:
    admin = world.admin()
    signed_in = Client(raise_request_exception=False)
    signed_in.force_login(admin)
    return signed_in


def test_no_method_is_our_mistake(client: Client) -> None:
    token = token_client(world.admin(), Scope.ADMIN).authorization
    for route in routes():
        for method in METHODS:
            headers = {"authorization": token} if route.startswith("api/") else {}
            answer = client.generic(method, filled(route, "1"), headers=headers)
            assert answer.status_code < 500, (method, route, answer.content[:300])


@pytest.mark.parametrize("value", ODD)
def test_no_odd_value_in_a_query_is_our_mistake(client: Client, value: str) -> None:
    job = world.placed_job(world.fake_node(), owner=world.user("ada"))
    query = "&".join(f"{name}={value}" for name in NAMES.split())
    for route in routes():
        address = filled(route, str(job.pk) if "job_id" in route else "1")
        answer = client.get(f"{address}?{query}")
        assert answer.status_code < 500, (route, answer.content[:300])


@pytest.mark.slow
@pytest.mark.parametrize("value", ["%00", "%ED%A0%80", "9" * 400, "-1", "NaN", "1e999", "%FF", "[]", ""])
def test_no_odd_value_alone_is_our_mistake(client: Client, value: str) -> None:
    """One refused value hides what the others would do."""
    job = world.placed_job(world.fake_node(), owner=world.user("ada"))
    for route in routes():
        address = filled(route, str(job.pk) if "job_id" in route else "1")
        for name in NAMES.split():
            answer = client.get(f"{address}?{name}={value}")
            assert answer.status_code < 500, (route, name, answer.content[:300])
