"""The parts that settings are put together from."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from environ import Env

from portal.configuration.celery import beat_schedule, transport_options
from portal.configuration.database import database


def configured(url: str) -> dict[str, object]:
    return database(
        Env.db_url_config(url), test_file=Path("test.sqlite3"), lock_s=1.5, idle_s=30, statement_s=4
    )


def test_postgresql_ends_waits_and_abandoned_transactions_by_itself() -> None:
    options = configured("postgresql://u:p@host/name")["OPTIONS"]
    assert isinstance(options, dict)
    limits = "-c lock_timeout=1500 -c idle_in_transaction_session_timeout=30000 -c statement_timeout=4000"
    assert options["options"] == limits
    assert (options["connect_timeout"], options["patience_s"], options["keepalives"]) == (2, 4.5, 1)


def test_options_in_the_address_stay() -> None:
    options = configured("postgresql://u:p@host/name?sslmode=require&options=-c%20work_mem=8MB")["OPTIONS"]
    assert isinstance(options, dict)
    assert options["sslmode"] == "require"
    assert options["options"].startswith("-c work_mem=8MB -c lock_timeout=1500")


def test_the_database_of_the_tests_has_these_options(db: None) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("15s",)
        else:
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone() == ("wal",)


def test_no_message_outlives_the_next_of_its_kind() -> None:
    for entry in beat_schedule(tick_every_s=1.0, sweep_every_s=30.0, market_every_s=30.0).values():
        assert entry["options"]["expires"] <= entry["schedule"]


@pytest.mark.parametrize("url", ["filesystem://", "redis://host/0"])
def test_each_transport_has_its_own_options(url: str) -> None:
    options = transport_options(url, Path("broker"))
    assert ("data_folder_in" in options) is url.startswith("filesystem")
