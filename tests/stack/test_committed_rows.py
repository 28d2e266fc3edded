"""The tests' own PostgreSQL keeps what it confirmed: else a lost row would be no fault of the portal."""

from __future__ import annotations

import psycopg
import pytest

from tests.harness.servers import NotInstalled, Postgres


def test_a_row_that_was_committed_survives_a_power_cut() -> None:
    try:
        server = Postgres()
    except NotInstalled as missing:
        pytest.skip(f"no {missing} here")
    try:
        with psycopg.connect(server.url, autocommit=True) as client:
            client.execute("CREATE TABLE numbers (number int)")
            for number in range(50):
                client.execute("INSERT INTO numbers VALUES (%s)", [number])
            server.stop()
        server.start()
        with psycopg.connect(server.url) as client:
            found = client.execute("SELECT count(*) FROM numbers").fetchone()
        assert found == (50,)
    finally:
        server.remove()
