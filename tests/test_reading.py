"""Pages, REST and the node API ask selectors: none of them queries a table by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUERY = re.compile(r"\b[A-Z]\w+\.(?:objects|present)\b(?!\.none\(\))")


@pytest.mark.parametrize("door", ["web", "api", "nodes"])
def test_no_door_has_queries_of_its_own(door: str) -> None:
    files = sorted((ROOT / "portal" / door).rglob("*.py"))
    assert files
    assert {file.name: found for file in files if (found := QUERY.findall(file.read_text()))} == {}
