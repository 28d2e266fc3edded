"""The tests' own PostgreSQL keeps what it confirmed: else a lost row would be no fault of the portal."""

from __future__ import annotations

import psycopg

from tests.harness.servers import Postgres


def test_a_row_that_was_committed_survives_a_power_cut(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as client:
        client.execute("CREATE TABLE numbers (number int)")
        for number in range(50):
            client.execute("INSERT INTO numbers VALUES (%s)", [number])
        postgres.stop()
    postgres.start()
    with psycopg.connect(postgres.url) as client:
        found = client.execute("SELECT count(*) FROM numbers").fetchone()
    assert found == (50,)
