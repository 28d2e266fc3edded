"""The production shape of the portal.

PostgreSQL and Redis, two web servers, two workers for each queue, two nodes.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis
import yaml
from django.db import connections
from environ import Env
from psycopg import errors

from client.foretune import Unreachable
from portal.configuration.database import database
from portal.ops.launch.processes import worker
from scheduler.models import Attempt, Job
from tests.harness.invariants import assert_all_hold
from tests.harness.portal_client import PortalClient
from tests.harness.servers import Postgres, Redis
from tests.harness.stack import Stack, with_one_node
from tests.stack.jobs import caught_with_a_checkpoint, ended, outcomes

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def counters() -> Iterator[Redis]:
    server = Redis()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def production(postgres: Postgres, counters: Redis, _rows_are_readable: None) -> Iterator[Stack]:
    yield from with_one_node(Stack(database_url=postgres.url, redis_url=counters.url))


@pytest.fixture(scope="module")
def second_web(production: Stack) -> PortalClient:
    """The user's client of the second web server; with it come two more workers."""
    for queue in ("control", "work"):
        production.supervisor.start(worker(queue, f"{queue}-2"))
    return production.start_web("web-2")


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
    job = production.client.wait(job_id, lambda _: True, timeout_s=60)
    assert job["id"] == job_id
    assert outcomes(ended(production, job_id)) == ["succeeded"]
    assert_all_hold(production.alias)


def test_who_signed_in_at_one_web_server_is_known_at_the_other(
    production: Stack, second_web: PortalClient
) -> None:
    with httpx.Client(trust_env=False) as browser:
        browser.get(f"{production.url}/login/")
        form = {"username": "user", "password": production.passwords["user"]}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        assert browser.post(f"{production.url}/login/", data=form).headers["Location"] == "/"
        page = browser.get(f"{second_web.http.base_url}/jobs/new/")
    assert page.status_code == httpx.codes.OK
    assert "Training data" in page.text


def test_both_web_servers_count_requests_together(
    production: Stack, second_web: PortalClient, counters: Redis
) -> None:
    store = redis.Redis.from_url(counters.url)
    for key in store.scan_iter("*rate:person:*"):
        store.delete(key)
    for client in (production.client, second_web) * 2:
        client.get("me/")
    counts = [store.get(key) for key in store.scan_iter("*rate:person:*:*")]
    assert counts == [b"40"], "four requests, in tenths"


@pytest.mark.slow
def test_jobs_from_two_web_servers_all_end_well_though_one_of_them_dies(
    production: Stack, second_web: PortalClient
) -> None:
    production.start_agent("beta")
    ids = [submit(client, production, f"job-{n}") for n, client in enumerate((production.client, second_web))]
    production.kill("web-2")
    with pytest.raises(Unreachable):
        submit(second_web, production, "job-2")
    # Job 1 is known to every client; job 2 is tried once more; job 3 is new.
    ids += [submit(production.client, production, f"job-{n}") for n in (1, 2, 3)]
    assert ids[1] == ids[2]
    for job_id in set(ids):
        assert outcomes(ended(production, job_id)) == ["succeeded"]
    assert Attempt.objects.using(production.alias).filter(job__in=ids).count() == 4
    assert len(nodes_of(production, ids)) == 2, "both nodes had something to do"
    assert_all_hold(production.alias)


def submit(client: PortalClient, stack: Stack, key: str) -> str:
    values = {"max_steps": 2, "tokens_per_sample": 64, "seed": 7}
    job = client.submit(model="builtin/tiny-llama", training_file=stack.training_file, params=values, key=key)
    return str(job["id"])


def nodes_of(stack: Stack, ids: list[str]) -> set[Any]:
    jobs = Job.objects.using(stack.alias).filter(pk__in=ids)
    return set(jobs.values_list("attempts__claims__node", flat=True))


def test_the_compose_file_makes_a_role_that_owns_its_database_and_nothing_else(postgres: Postgres) -> None:
    compose = yaml.safe_load((Path(__file__).parents[2] / "docker-compose.yml").read_text())
    script = compose["configs"]["database-role"]["content"]
    env = {"PATH": os.environ["PATH"], "POSTGRES_PASSWORD": "it's a word"}
    psql = [postgres.binaries / "psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-d", postgres.superuser_url]
    subprocess.run(psql, env=env, input=script, text=True, check=True, stdout=subprocess.DEVNULL)
    with psycopg.connect(postgres.superuser_url) as superuser:
        rights = "rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication, rolpassword LIKE 'SCRAM%'"
        roles = superuser.execute(f"SELECT rolname, {rights} FROM pg_authid WHERE rolcanlogin").fetchall()
        owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'foretune'"
        assert {("foretune", False, True), ("postgres", True, None)} <= set(roles)
        assert superuser.execute(owner).fetchone() == ("foretune",)


def test_a_paused_process_cannot_hold_everybodys_rows(postgres: Postgres) -> None:
    parsed = Env.db_url_config(postgres.url)
    limits = database(parsed, test_file=Path(), lock_s=0.3, idle_s=1.0, statement_s=0)["OPTIONS"]
    with psycopg.connect(postgres.url, autocommit=True) as plain:
        plain.execute("CREATE TABLE shared (number integer); INSERT INTO shared VALUES (1)")
    lock = "SELECT * FROM shared FOR UPDATE"
    paused = psycopg.connect(postgres.url, **limits)
    paused.execute(lock)
    with psycopg.connect(postgres.url, autocommit=True, **limits) as other:
        with pytest.raises(errors.LockNotAvailable):
            other.execute(lock)
        time.sleep(1.2)
        assert other.execute(lock).fetchone() == (1,)
    with pytest.raises(errors.IdleInTransactionSessionTimeout):
        paused.execute("SELECT 1")
    paused.close()
