"""Programs of the last release go on with the API as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests import released_api
from tests.released_api import breaks, present, since


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The present document, as a release would keep it."""
    path: Path = tmp_path_factory.mktemp("release") / "api.json"
    released_api.keep(path, "1.0.0")
    kept: dict[str, Any] = json.loads(path.read_text())
    assert path.stat().st_size < 400_000
    return kept


def test_nothing_breaks_that_the_changelog_does_not_tell() -> None:
    """There is none to compare with before the first release."""
    if released_api.KEPT.exists():
        old = json.loads(released_api.KEPT.read_text())
        told = since(old["release"], released_api.CHANGELOG.read_text())
        assert breaks(old, present(), told) == []


def parts(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    job = document["paths"]["/api/jobs/"]
    return {
        "paths": document["paths"],
        "jobs": job,
        "answer": schemas["FileOut"],
        "body": schemas["TokenInRequest"],
        "query": {one["name"]: one for one in job["get"]["parameters"]},
        "schemas": schemas,
    }


Change = Callable[[dict[str, Any]], Any]
BREAKS: dict[str, Change] = {
    "`GET audit/`: is gone": lambda now: now["paths"].pop("/api/audit/"),
    "`DELETE files/ID/`: is gone": lambda now: now["paths"]["/api/files/{file_id}/"].pop("delete"),
    "`GET jobs/`: `owner` is taken no longer": lambda now: now["jobs"]["get"]["parameters"].remove(
        now["query"]["owner"]
    ),
    "`GET jobs/`: `owner` has to be given": lambda now: now["query"]["owner"].update(required=True),
    "`GET jobs/`: `owner` may be string no longer": lambda now: now["query"]["owner"].update(
        schema={"type": "integer"}
    ),
    "`GET files/`: `data[].rows` is told no longer": lambda now: now["answer"]["properties"].pop("rows"),
    "`GET files/`: `data[].rows` may be missing now": lambda now: now["answer"]["required"].remove("rows"),
    "`GET files/`: `data[].rows` may be null now": lambda now: now["answer"]["properties"]["rows"].update(
        type=["integer", "null"]
    ),
    "`POST tokens/`: `networks` is taken no longer": lambda now: now["body"]["properties"].pop("networks"),
    "`POST tokens/`: `end` has to be given": lambda now: (
        now["body"]["properties"].update(end={"type": "string"}),
        now["body"]["required"].append("end"),
    ),
    "`POST tokens/`: `scope` may be submit no longer": lambda now: now["schemas"]["ScopeEnum"]["enum"].remove(
        "submit"
    ),
    "`POST tokens/`: `expires_at` may be null no longer": lambda now: now["body"]["properties"][
        "expires_at"
    ].update(type="string"),
    "`POST jobs/`: is answered with 201 no longer": lambda now: now["jobs"]["post"]["responses"].pop("201"),
    "`POST jobs/`: takes application/json no longer": lambda now: now["jobs"]["post"]["requestBody"][
        "content"
    ].pop("application/json"),
}
NONE: tuple[Change, ...] = (
    lambda now: now["paths"].update({"/api/more/": now["paths"]["/api/audit/"]}),
    lambda now: now["answer"]["properties"].update(more={"type": "string"}),
    lambda now: now["answer"]["required"].append("more"),
    lambda now: now["body"]["properties"].update(more={"type": "string"}),
    lambda now: now["body"]["required"].remove("name"),
    lambda now: now["query"]["owner"].update(schema={"type": ["string", "integer"]}),
    lambda now: now["jobs"]["get"]["parameters"].append({"name": "x", "in": "query", "schema": {}}),
    lambda now: now["schemas"]["ScopeEnum"]["enum"].append("more"),
)


def test_each_kind_of_break_is_found_and_told_by_its_place(kept: dict[str, Any]) -> None:
    assert breaks(kept, kept, "") == breaks(kept, present(), "") == []
    for expected, change in BREAKS.items():
        now = deepcopy(kept)
        change(parts(now))
        assert breaks(kept, now, "") == [expected]
        place, _, rest = expected.partition(": ")
        field = rest.split(" ")[0] if rest.startswith("`") else ""
        assert breaks(kept, now, f"- {place} has changed: {field}.") == [], "the changelog tells it"
        assert breaks(kept, now, f"- {place[:-2]}`: {field}.") == [expected], "it tells another one"
    for change in NONE:
        now = deepcopy(kept)
        change(parts(now))
        assert breaks(kept, now, "") == []


def test_what_was_deprecated_may_go(kept: dict[str, Any]) -> None:
    for name in ("`GET audit/`: is gone", "`GET files/`: `data[].rows` is told no longer"):
        before, now = deepcopy(kept), deepcopy(kept)
        before["paths"]["/api/audit/"]["get"]["deprecated"] = True
        before["components"]["schemas"]["FileOut"]["properties"]["rows"]["deprecated"] = True
        BREAKS[name](parts(now))
        assert breaks(before, now, "") == []


def test_lines_since_a_release_are_those_above_it() -> None:
    log = "# Changelog\n\n## Unreleased\n\n- a\n\n## 1.0.0 - 2026-12-01\n\n- b\n"
    assert "- a" in since("1.0.0", log)
    assert "- b" not in since("1.0.0", log)
