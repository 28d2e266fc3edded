"""How long lists of jobs take over REST: `python -m benchmarks.portal.lists [--small]`.

Fills a throw-away PostgreSQL and serves it with two web processes. Eight readers with tokens of one person
ask for each filter and order at once. Then one of them reads a job again and again, whole and by its tag.
Aim: p95 of each list at most 200 ms, the same number of queries whatever the rows are, and 304 for at most a
third of the time of 200.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import http.client
import math
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from benchmarks.portal.pages import SIZES, SMALL
from benchmarks.portal.serving import served
from tests.harness.servers import NotInstalled, Postgres

READERS = 8
OUR_WORKER = "portal.serving.worker.Worker"
LISTS = (
    "", "state=live", "state=failed", "state=queued&state=running", "owner=me", "team={team}",
    "node={node}", "name={name}", "model={model}", "training_file={file}", "metadata[k]=v",
    "submitted_after={day}", "submitted_before={day}", "ended_after={day}", "ended_before={day}",
    "order=submitted_at", "order=-submitted_at", "order=ended_at", "order=-ended_at", "order=state_since",
    "order=-state_since", "owner=me&state=failed&order=-ended_at",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.portal.lists", description=__doc__)
    parser.add_argument("--small", action="store_true", help=f"only {SMALL}")
    parser.add_argument("--requests", type=int, default=10, help="of each reader, for each list")
    given = parser.parse_args()
    with fresh_database() as found:
        if found:
            measure(SMALL if given.small else SIZES, given.requests)
    return 0 if found else 1


@contextmanager
def fresh_database() -> Iterator[bool]:
    """A PostgreSQL of this benchmark's own for all processes that it starts, without limits of rates.

    False where this machine has none.
    """
    try:
        postgres = Postgres()
    except NotInstalled as missing:
        print(f"{missing} is not on this machine.", file=sys.stderr)
        yield False
        return
    os.environ |= {"DATABASE_URL": postgres.url, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    os.environ |= {"DATA_DIR": str(postgres.root), "LOG_LEVEL": "ERROR", "OMP_NUM_THREADS": "1"}
    os.environ |= {"RATE_LIMIT": "1000000/min", "TOKEN_RATE_LIMIT": "1000000/min"}
    (postgres.root / "static").mkdir()  # WhiteNoise warns where there is none
    try:
        yield True
    finally:
        postgres.remove()


def measure(sizes: dict[str, int], requests: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.utils import timezone

    from benchmarks.portal.crowd import fill
    from portal.accounts.models import User
    from portal.accounts.services import create_token

    call_command("migrate", verbosity=0)
    fill(**sizes, now=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    person = User.objects.get(username="person0")
    _, token = create_token(owner=person, name="reader", now=timezone.now())
    job, gaps = shown_job(person)
    with served(OUR_WORKER, {**os.environ}) as (port, _):
        print(f"{sizes}; {READERS} readers")
        print(f"{'list':<44} {'p50 ms':>7} {'p95 ms':>7} {'rows':>8} {'queries':>8}")
        for query in LISTS:
            path = f"/api/jobs/?{query.format(**{name: quote(value) for name, value in gaps.items()})}"
            times, total = asked_by_all(port, path, token, requests)
            print(f"{query:<44} {share_of(times, 0.5):>7.0f} {share_of(times, 0.95):>7.0f} {total:>8,}"
                  f" {queries(path, token):>8}", flush=True)  # fmt: skip
        whole, known = read_again(port, f"/api/jobs/{job}/", token, 20 * requests)
        print(f"a job: 200 in {whole:.1f} ms, 304 in {known:.1f} ms: {known / whole:.2f}")


def shown_job(person: Any) -> tuple[str, dict[str, str]]:
    """An ended job of a person, and values for the filters."""
    from scheduler.models import Claim
    from scheduler.selectors.jobs import visible_jobs

    jobs = visible_jobs(person)
    job = jobs.filter(state="succeeded").order_by("-pk")[0]
    in_team = jobs.filter(team__isnull=False).first()
    return job.pk, {
        "team": in_team.team.name if in_team and in_team.team else "none",
        "node": Claim.objects.filter(attempt__job=job).values_list("node_id", flat=True)[0],
        "name": job.name,
        "model": job.model,
        "file": job.training_file_id,
        "day": job.submitted_at.strftime("%Y-%m-%dT00:00:00Z"),
    }


def asked_by_all(port: int, path: str, token: str, requests: int) -> tuple[list[float], int]:
    """Milliseconds of all answers to all readers, and the rows that the filters match."""
    import json

    def read(_: int) -> tuple[list[float], int]:
        connection, times, total = http.client.HTTPConnection("127.0.0.1", port), list[float](), 0
        for _ in range(requests):
            began = time.perf_counter()
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
            times.append(1000 * (time.perf_counter() - began))
            assert answer.status == 200, (path, answer.status, body[:300])
            total = json.loads(body)["total"]
        connection.close()
        return times, total

    with ThreadPoolExecutor(READERS) as readers:
        answers = list(readers.map(read, range(READERS)))
    return [one for times, _ in answers for one in times], answers[0][1]


def queries(path: str, token: str) -> int:
    """How many one answer takes, in this process."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as caught:
        Client(SERVER_NAME="localhost").get(path, headers={"Authorization": f"Bearer {token}"})
    return len(caught)


def read_again(port: int, path: str, token: str, requests: int) -> tuple[float, float]:
    """Median milliseconds of the whole answer, and of the one that it is known."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times: dict[int, list[float]] = {200: [], 304: []}
    tag = ""
    for number in range(2 * requests):
        headers = {"Authorization": f"Bearer {token}", **({"If-None-Match": tag} if number % 2 else {})}
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        times[answer.status].append(1000 * (time.perf_counter() - began))
        tag = answer.headers["ETag"]
    connection.close()
    return share_of(times[200], 0.5), share_of(times[304], 0.5)


def share_of(times: list[float], share: float) -> float:
    """By nearest rank."""
    return sorted(times)[math.ceil(share * len(times)) - 1]


if __name__ == "__main__":
    sys.exit(main())
