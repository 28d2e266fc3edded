"""Connection options of the two databases: how long each wait may last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# SQLite without IMMEDIATE answers "database is locked" as soon as two processes write. In WAL mode
# synchronous=NORMAL loses the last commits with the machine's power, and with them jobs that were confirmed;
# FULL costs half a millisecond a commit on an SSD.
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA cache_size=-20000;",
}
# A peer that is gone, or behind a cut line, is noticed after 20 s by the kernel.
_KEEP_ALIVE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
_CONNECT_S = 5
_SERVER_FIRST_S = 0.5  # a server that runs gives up itself before its client does, and says why


def database(
    parsed: dict[str, Any], *, test_file: Path, lock_s: float, idle_s: float, statement_s: float
) -> dict[str, Any]:
    """The entry of DATABASES for an address as django-environ parses it.

    lock_s: how long a statement waits for another's lock. idle_s: after how long PostgreSQL ends a
    transaction whose process has stopped talking, so that a paused one cannot hold everybody's rows.
    statement_s: how long a statement may take in all, on PostgreSQL; 0 for no limit.
    """
    lock_s = min(lock_s, statement_s or lock_s)
    common = {**parsed, "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    if parsed["ENGINE"].endswith("sqlite3"):
        # In memory, connections would share one cache and lock each other out in ways that a file never does.
        # A request of a crowd may have waited three seconds for a thread: together it is 503 within 5 s.
        wait_s = min(lock_s, statement_s / 2) if statement_s else lock_s
        options = {**_SQLITE_OPTIONS, "timeout": wait_s}
        return {**common, "OPTIONS": options, "TEST": {"NAME": str(test_file)}}
    limits = {
        "lock_timeout": lock_s,
        "idle_in_transaction_session_timeout": idle_s,
        "statement_timeout": statement_s,
    }
    words = [f"-c {name}={round(seconds * 1000)}" for name, seconds in limits.items()]
    given = parsed.get("OPTIONS", {})
    words = [given["options"], *words] if "options" in given else words
    connect_s = min(_CONNECT_S, int(statement_s / 2)) if statement_s else _CONNECT_S
    options = {"connect_timeout": connect_s, **_KEEP_ALIVE, **given, "options": " ".join(words)}
    if statement_s:
        options["patience_s"] = statement_s + _SERVER_FIRST_S
    return {**common, "ENGINE": "portal.postgresql", "OPTIONS": options}
