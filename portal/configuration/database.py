"""Connection options of the two databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# SQLite without IMMEDIATE answers "database is locked" as soon as two processes write.
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-20000;",
}


def database(parsed: dict[str, Any], *, test_file: Path, lock_s: float, idle_s: float) -> dict[str, Any]:
    """The entry of DATABASES for an address as django-environ parses it.

    lock_s: how long a PostgreSQL statement waits for another's lock. idle_s: after how long PostgreSQL
    ends a transaction whose process has stopped talking, so that a paused one cannot hold everybody's rows.
    """
    common = {**parsed, "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    if parsed["ENGINE"].endswith("sqlite3"):
        # In memory, connections would share one cache and lock each other out in ways that a file never does.
        return {**common, "OPTIONS": _SQLITE_OPTIONS, "TEST": {"NAME": str(test_file)}}
    limits = {"lock_timeout": lock_s, "idle_in_transaction_session_timeout": idle_s}
    words = [f"-c {name}={round(seconds * 1000)}" for name, seconds in limits.items()]
    given = parsed.get("OPTIONS", {})
    words = [given["options"], *words] if "options" in given else words
    return {**common, "OPTIONS": {"connect_timeout": 5, **given, "options": " ".join(words)}}
