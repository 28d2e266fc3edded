"""Every template serves readers who do not see the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

TEMPLATES = sorted((Path(settings.BASE_DIR) / "templates").rglob("*.html"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_headings_of_tables_say_what_they_head(path: Path) -> None:
    headings = re.findall(r"<th\b(?!ead)[^>]*>", path.read_text(encoding="utf-8"))
    assert [tag for tag in headings if "scope=" not in tag] == []
