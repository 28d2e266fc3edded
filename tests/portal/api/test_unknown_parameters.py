"""A typing error in an address must not pass for an answer to another question."""

from __future__ import annotations

import re

from rest_framework.test import APIClient

from tests.portal.access.addresses import routes

METHODS = ("get", "post", "put", "patch", "delete")


def filled(route: str) -> str:
    return "/" + re.sub(r"<int:\w+>", "1", re.sub(r"<(?!int)\w+:\w+>", "x", route))


def test_options_are_told_of_every_address(admin_api: APIClient) -> None:
    addresses = [filled(route) for route in routes() if route.startswith("api/") and not route.endswith("$")]
    told = {address: admin_api.options(address).status_code for address in addresses}
    assert {address: status for address, status in told.items() if status >= 500} == {}
    assert list(told.values()).count(200) > 50


def test_every_address_refuses_a_query_parameter_that_it_does_not_know(admin_api: APIClient) -> None:
    asked = 0
    for route in sorted(routes()):
        if not route.startswith("api/") or route.endswith("$"):
            continue
        address = filled(route)
        for method in METHODS:
            answer = getattr(admin_api, method)(f"{address}?nonsense=1")
            if answer.status_code == 405:
                continue
            assert answer.status_code == 400, f"{method} {address}: {answer.status_code}"
            if address not in ("/api/docs/", "/api/schema/"):  # a page, and YAML
                assert list(answer.json()["error"]["fields"]) == ["nonsense"], f"{method} {address}"
            asked += 1
    assert asked > 100


def test_head_and_format_are_no_way_around(admin_api: APIClient) -> None:
    assert admin_api.head("/api/jobs/?nonsense=1").status_code == 400
    assert admin_api.get("/api/jobs/?format=json").status_code == 400
    schema = admin_api.get("/api/schema/?format=json")
    assert schema["Content-Type"].startswith("application/vnd.oai.openapi+json")
    assert admin_api.get("/api/schema/?format=xml").status_code == 400
