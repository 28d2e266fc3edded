"""Objects have tags, which readers know again and from which changes begin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import caches
from django.db import transaction
from drf_spectacular.generators import SchemaGenerator

from portal import clock, disk
from portal.api.cluster import storage
from portal.clock import database_now
from tests.portal.access import table
from tests.portal.access.addresses import addresses, routes
from tests.portal.access.asking import AccessMatrix
from tests.portal.access.table import Row

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
NEVER = '"of-never"'


@contextmanager
def taken_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def described() -> dict[str, Any]:
    """What the description says of each GET, by the route as the resolver writes it."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return {path.replace("{", "<").replace("}", ">"): verbs for path, verbs in schema["paths"].items()}


def ask(matrix: AccessMatrix, role: str, method: str, address: str, body: str = "", **headers: str) -> Any:
    for cache in caches.all():
        cache.clear()
    content = matrix.content(address, body, headers)
    headers["Authorization"] = f"Bearer {matrix.askers.tokens[role]}"
    return matrix.client.generic(method, matrix.filled(address), headers=headers, **content)


def test_what_a_reader_knows_is_not_told_again_and_the_description_says_so(
    matrix: AccessMatrix, described: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, full = database_now(), disk.Disk(100, 50)
    monkeypatch.setattr(clock, "read", lambda: now)
    monkeypatch.setattr(storage, "disk", lambda: full)
    monkeypatch.setattr(storage, "rest_bytes", lambda: 0)
    tagged, wrong = 0, []
    for route in sorted(route for route in routes() if route.startswith("api/")):
        for address in addresses(route):
            answer = ask(matrix, "admin", "GET", address)
            if answer.status_code != 200 or answer.streaming or "json" not in answer["Content-Type"]:
                continue
            told = json.loads(answer.content)
            plain = f"/{route}".replace("str:", "").replace("path:", "").replace("int:", "")
            says = described[plain]["get"]["responses"]
            is_one = not isinstance(told.get("data"), list)
            if not (is_one == answer.has_header("ETag") == ("304" in says) == ("headers" in says["200"])):
                wrong.append(f"{address}: a tag or its description is missing, or there is one of a list")
            if is_one and answer.has_header("ETag"):
                tag = answer["ETag"]
                same = ask(matrix, "admin", "GET", address, **{"If-None-Match": f"{NEVER}, W/{tag}"})
                if (same.status_code, same.content, same["ETag"]) != (304, b"", tag):
                    wrong.append(f"{address}: {same.status_code} for what is known")
                some = ask(matrix, "admin", "GET", f"{address}?fields={next(iter(told))}")
                if some["ETag"] != tag:
                    wrong.append(f"{address}: another tag with fewer fields")
                tagged += 1
    assert not wrong, "\n".join(wrong)
    assert tagged > 30


def _allowed(row: Row) -> str | None:
    """A role that may change what the row is about."""
    return next((role for role in ("admin", "member", "lead") if row.expected[role] in ("200", "204")), None)


def test_a_change_begins_from_what_was_seen_or_is_refused(
    matrix: AccessMatrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever moved by itself meanwhile."""
    now = database_now()
    changes = [
        (row, role)
        for row in table.read()
        if row.method in ("PATCH", "PUT", "DELETE") and row.address.startswith("/api/")
        and (role := _allowed(row))
    ]  # fmt: skip
    wrong, begun = [], 0
    for row, role in changes:
        with taken_back():
            what = f"{row.method} {row.address}"
            monkeypatch.setattr(clock, "read", lambda: now)
            seen = ask(matrix, role, "GET", row.address)
            refused = ask(matrix, role, row.method, row.address, row.body, **{"If-Match": NEVER})
            code = refused.status_code == 412 and refused.json()["error"]["code"]
            if code != "changed_meanwhile" or ask(matrix, role, "GET", row.address).content != seen.content:
                wrong.append(f"{what}: {refused.status_code} from what never was")
            tag = seen.headers.get("ETag", "*")
            monkeypatch.setattr(clock, "read", lambda: now + timedelta(hours=1))
            done = ask(matrix, role, row.method, row.address, row.body, **{"If-Match": tag})
            if str(done.status_code) != row.expected[role]:
                wrong.append(f"{what}: {done.status_code} from what it is")
                continue
            after = ask(matrix, role, "GET", row.address)
            if tag != "*" and done.status_code == 200 and done["ETag"] != after["ETag"]:
                wrong.append(f"{what}: tells another tag than GET")
            if after.headers.get("ETag", tag).split("-")[0] == tag.split("-")[0]:
                continue  # it was so already, or is gone
            begun += 1
            late = ask(matrix, role, row.method, row.address, row.body, **{"If-Match": tag})
            if late.status_code != 412:
                wrong.append(f"{what}: {late.status_code} from what was so before")
    assert not wrong, "\n".join(wrong)
    assert begun > 7


def test_verbs_begin_from_what_was_seen_as_well(matrix: AccessMatrix) -> None:
    for address in ("/api/nodes/{node}/", "/api/jobs/{job}/", "/api/arrays/{array}/"):
        verb = {"n": "drain/", "j": "pause/", "a": "cancel/"}[address[5]]
        with taken_back():
            seen = ask(matrix, "admin", "GET", address)["ETag"]
            before = ask(matrix, "admin", "POST", f"{address}{verb}", "{}", **{"If-Match": NEVER})
            assert before.status_code == 412, address
            done = ask(matrix, "admin", "POST", f"{address}{verb}", "{}", **{"If-Match": seen})
            assert done.status_code == 200, done.content
