"""All lists in pieces, by the schema."""

from __future__ import annotations

from typing import Any

from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal.api.common.ids import PREFIXES

ID = "0193c2a7e4b1" * 2
KEYS = [*(f"{kind}-{ID}" for kind in ("ftjob", "ftarray", "file", "node", "sim", "cal")), f"upload_{ID}"]
KEYS += [f"{prefix}7" for prefix in PREFIXES.values()]  # none has a row


def lists() -> list[str]:
    """The addresses of all lists that do not belong to one object."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    names = lambda operation: {one["name"] for one in operation.get("parameters", ())}  # noqa: E731
    return [
        path
        for path, operations in schema["paths"].items()
        if {"after", "limit"} <= names(operations.get("get", {})) and "{" not in path
    ]


def test_a_cursor_needs_no_row_but_is_an_id_of_its_list(admin_api: APIClient) -> None:
    odd = ["0x7", "７", "-7", "7", "", "ftjob-", KEYS[0].upper(), f"{KEYS[0]}0", "9" * 64]
    found = lists()
    assert len(found) > 8
    for path in found:
        status_of = lambda keys, path=path: {  # noqa: E731
            key: admin_api.get(path, {"after": key}).status_code for key in keys
        }
        known = status_of(KEYS)
        taken = [key for key, status in known.items() if status == 200]
        assert len(taken) == 1, path
        prefix = taken[0].rpartition("-")[0]
        refused = status_of([*odd, *(f"{prefix}-{digits}" for digits in ("", "07", "７", "-7", 2**63))])
        assert {*refused.values(), *(known[key] for key in known if key != taken[0])} == {400}, path


def test_the_page_of_jobs_goes_on_after_a_job_that_is_gone(browser: Client) -> None:
    assert browser.get("/jobs/", {"after": KEYS[0]}).status_code == 200
    assert browser.get("/jobs/", {"after": "zzz"}).status_code == 400
