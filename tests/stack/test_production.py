"""The production shape: PostgreSQL and Redis. F7: the database restarts under a running job."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from django.db import connections

from tests.harness.invariants import assert_all_hold
from tests.harness.servers import NotInstalled, Postgres, Redis
from tests.harness.stack import Stack
from tests.stack.jobs import caught_with_a_checkpoint, ended, outcomes

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def postgres(_rows_are_readable: None) -> Iterator[Postgres]:
    try:
        server = Postgres()
    except NotInstalled as missing:
        pytest.skip(f"no {missing} here")
    yield server
    server.remove()


@pytest.fixture(scope="module")
def production(postgres: Postgres) -> Iterator[Stack]:
    redis = Redis()
    made = Stack(database_url=postgres.url, redis_url=redis.url)
    try:
        made.start()
        made.start_agent("alpha")
        yield made
    finally:
        made.stop()
        redis.remove()


def test_f7_a_database_restart_is_a_short_503_and_the_job_goes_on(
    production: Stack, postgres: Postgres
) -> None:
    job_id = caught_with_a_checkpoint(production)
    postgres.stop()
    answer = production.client.http.get(f"/api/jobs/{job_id}/")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert answer.headers["Retry-After"]
    postgres.start()
    connections[production.alias].close()  # ours was cut, too
    job = production.client.wait(job_id, lambda _: True, timeout_s=20)
    assert job["id"] == job_id
    assert outcomes(ended(production, job_id)) == ["succeeded"]
    assert_all_hold(production.alias)
