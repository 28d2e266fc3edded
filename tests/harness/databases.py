"""Which databases a test runs on.

Most tests run once: those of `FOLDERS` on PostgreSQL, all others on SQLite. Pages, browsers and the live
stack run the same statements on SQLite. Tests of locks and transactions run on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from django.db import connection

FOLDERS = ("tests/scheduler", "tests/knowledge", "tests/portal")
PAGES = "tests/portal/web"
MARKS = ("one_database", "two_databases", "postgresql")
FIXTURES = {"db", "transactional_db", "live_server"}


def empty_by_deletion() -> None:
    """Delete the rows of a test that commits.

    To truncate the sixty tables takes PostgreSQL several times as long.
    """
    if connection.vendor == "postgresql":
        operations: Any = type(connection.ops)
        truncation = operations.sql_flush

        def sql_flush(self: Any, style: Any, tables: Sequence[str], **how: bool) -> list[str]:
            if any(how.values()):  # sequences begin anew, or other tables are emptied as well
                return list(truncation(self, style, tables, **how))
            return ["; ".join(f"DELETE FROM {self.quote_name(table)}" for table in tables)] if tables else []

        operations.sql_flush = sql_flush


def mark_databases(items: Iterable[pytest.Item]) -> None:
    """Mark tests of the database by where they run, unless they are marked themselves."""
    for item in items:
        if uses_database(item) and not any(map(item.get_closest_marker, MARKS)):
            item.add_marker(_databases_of(item))


def uses_database(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("django_db") is not None
    return marked or bool(FIXTURES & set(getattr(item, "fixturenames", ())))


def _databases_of(item: pytest.Item) -> str:
    folder = item.path.relative_to(item.config.rootpath).as_posix()
    if not folder.startswith(FOLDERS) or folder.startswith(PAGES):
        return "one_database"
    return "two_databases" if _commits(item) else "postgresql"


def _commits(item: pytest.Item) -> bool:
    """Does it commit, so that others see its rows and wait for its locks?"""
    marked, fixtures = item.get_closest_marker("django_db"), getattr(item, "fixturenames", ())
    by_mark = bool(marked and marked.kwargs.get("transaction"))
    return by_mark or "transactional_db" in fixtures or "live_server" in fixtures
