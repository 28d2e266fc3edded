"""Pages, REST and the node API ask selectors.

None of them queries a table by itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUERY = re.compile(r"\b[A-Z]\w+\.(?:objects|present)\b(?!\.none\(\))")


@pytest.mark.parametrize("interface", ["web", "api", "nodes"])
def test_no_interface_has_queries_of_its_own(interface: str) -> None:
    files = sorted((ROOT / "portal" / interface).rglob("*.py"))
    assert files
    assert {file.name: found for file in files if (found := QUERY.findall(file.read_text()))} == {}
