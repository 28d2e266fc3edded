"""Every address with every method: never a 5xx."""

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
