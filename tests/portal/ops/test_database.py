"""The time for which a process waits for the database.

The tests also cover which processes ask a database that does not answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from environ import Env
from psycopg import DataError, OperationalError
from psycopg.postgres import types

from portal.configuration.database import database
from portal.postgresql.base import BoundedConnection, TimeLoader
from portal.postgresql.breaker import Breaker
from portal.serving.queued import slow_s
from tests.harness.servers import Postgres

TIMESTAMPTZ = types["timestamptz"].oid
REPOSITORY = Path(__file__).resolve().parents[3]
SHOW = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS']['timeout'])"


def options(url: str, *, statement_s: float) -> dict[str, object]:
    parsed = Env.db_url_config(url)
    made = database(parsed, test_file=Path(), lock_s=15, idle_s=30, statement_s=statement_s)["OPTIONS"]
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize(("process", "waits_s"), [("import portal.wsgi", 2), ("import portal.celery", 15)])
def test_requests_wait_for_a_lock_shorter_than_workers(process: str, waits_s: float, tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    env = {"PATH": os.environ["PATH"], "DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "portal.settings"}
    command = [sys.executable, "-c", f"{process}; {SHOW}"]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=True)
    assert float(done.stdout) == waits_s


def test_what_sqlite_confirmed_survives_a_power_cut() -> None:
    assert "PRAGMA synchronous=FULL" in str(
        options("sqlite:///portal.sqlite3", statement_s=4)["init_command"]
    )


def test_on_postgresql_the_server_gives_up_before_its_client() -> None:
    made = options("postgresql://host/name?options=-c%20x=1", statement_s=4)
    assert made["patience_s"] == 4.5
    assert made["connect_timeout"] == 2
    words = (
        "-c x=1 -c lock_timeout=4000 -c idle_in_transaction_session_timeout=30000 -c statement_timeout=4000"
    )
    assert made["options"] == words


def test_migrations_take_as_long_as_they_take_but_block_nobody_for_long() -> None:
    made = options("postgresql://host/name", statement_s=0)
    assert "patience_s" not in made
    assert "-c lock_timeout=15000" in str(made["options"])
    assert "-c statement_timeout=0" in str(made["options"])


@pytest.mark.parametrize(
    "text", ["2026-11-28 04:00:00+00", "1969-12-31 23:59:59.9+00", "9999-12-31 01:02:03.000456+00"]
)
def test_times_are_read_as_django_reads_them(text: str) -> None:
    read = TimeLoader(TIMESTAMPTZ).load(memoryview(text.encode()))
    assert read == BaseTzLoader(TIMESTAMPTZ).load(text.encode()).replace(tzinfo=UTC)
    assert read.tzinfo is UTC


@pytest.mark.parametrize("text", ["infinity", "10000-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC"])
def test_times_that_python_does_not_have_are_said_to_be_such(text: str) -> None:
    with pytest.raises(DataError, match="timestamp"):
        TimeLoader(TIMESTAMPTZ).load(text.encode())


def test_while_nothing_answers_one_caller_at_a_time_may_ask() -> None:
    now = [0.0]
    breaker = Breaker(pause_s=2.0, clock=lambda: now[0])
    assert [breaker.admits() for _ in range(3)] == [True] * 3
    breaker.silent()
    assert not breaker.admits()
    now[0] = 2.0
    assert [breaker.admits() for _ in range(3)] == [True, False, False]
    breaker.answered()
    assert [breaker.admits() for _ in range(3)] == [True] * 3


@pytest.fixture
def patient(postgres: Postgres) -> Iterator[BoundedConnection]:
    """A connection with three seconds of patience."""
    made = BoundedConnection.connect(postgres.url)
    made.patience_s = 3.0
    yield made
    made.close()


def sleep(there: BoundedConnection, seconds: float) -> None:
    there.execute("SELECT pg_sleep(%s)", [seconds])


def test_slow_statements_of_one_request_share_its_patience(patient: BoundedConnection) -> None:
    for _ in range(2):
        sleep(patient, 2.0)  # outside of requests each has its own
    mark = slow_s.set(0.0)
    try:
        for _ in range(10):
            sleep(patient, 0.1)
        sleep(patient, 2.0)
        with pytest.raises(OperationalError):
            sleep(patient, 2.0)
    finally:
        slow_s.reset(mark)
