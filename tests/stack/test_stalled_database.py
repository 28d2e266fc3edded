"""F7, F8: a PostgreSQL whose processes are stopped takes connections and never answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from portal.configuration import gunicorn
from portal.launch import machine
from tests.harness.servers import NotInstalled, Postgres, Redis
from tests.harness.stack import Stack

pytestmark = pytest.mark.stack
SLACK_S = 3  # on a busy machine, beyond the 5 s that are promised


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    try:
        server = Postgres()
    except NotInstalled as missing:
        pytest.skip(f"no {missing} here")
    yield server
    server.remove()


@pytest.fixture(scope="module")
def web(postgres: Postgres, _rows_are_readable: None) -> Iterator[Stack]:
    """Nothing but a web server."""
    broker = Redis()
    made = Stack(database_url=postgres.url, redis_url=broker.url)
    try:
        made.start_web_alone()
        machine.wait_until_served(made.url)
        yield made
    finally:
        made.stop()
        broker.remove()


def signed_in(web: Stack) -> str:
    """The cookies of a person's browser."""
    with httpx.Client(base_url=web.url, trust_env=False) as browser:
        browser.get("/login/")
        form = {"username": "user", "password": web.passwords["user"]}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        assert browser.post("/login/", data=form).headers["Location"] == "/"
        return f"sessionid={browser.cookies['sessionid']}"


def test_a_stalled_database_is_503_within_5_s_at_every_door_and_healthz_answers(
    web: Stack, postgres: Postgres
) -> None:
    headers = {
        "/jobs/": {"Cookie": signed_in(web)},
        "/api/jobs/": {"Authorization": f"Bearer {web.token}"},
        "/agent/v1/sync": {"Authorization": "Bearer fnode-" + "x" * 43},
        "/healthz": {},
    }
    doors = [("GET", "/jobs/"), ("GET", "/api/jobs/"), ("POST", "/agent/v1/sync")] * gunicorn.threads

    def ask(door: tuple[str, str]) -> tuple[httpx.Response, float]:
        method, path = door
        began = time.monotonic()
        answer = httpx.request(method, web.url + path, headers=headers[path], trust_env=False, timeout=30)
        return answer, time.monotonic() - began

    with ThreadPoolExecutor(len(doors) + 1) as crowd:
        assert all(answer.status_code < 500 for answer, _ in crowd.map(ask, doors))
        with postgres.stalled():
            asked = [crowd.submit(ask, door) for door in doors]
            time.sleep(0.5)  # all threads wait now
            alive, waited_s = ask(("GET", "/healthz"))
            assert (alive.status_code, any(request.done() for request in asked)) == (200, False)
            assert waited_s < 1 + SLACK_S
            time.sleep(0.5)  # all threads wait now
            for (_, path), request in zip(doors, asked, strict=True):
                answer, spent_s = request.result()
                assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, path
                assert answer.headers["Retry-After"]
                assert spent_s < 5 + SLACK_S, path
            assert json.loads(asked[-1].result()[0].content)["error"]["code"] == "unavailable"
            again = [ask(door)[1] for door in doors]
            assert sum(again) < 10 * SLACK_S, "each request waited for itself"
        time.sleep(2.5)  # until the next may ask
        assert all(answer.status_code < 500 for answer, _ in map(ask, doors))
