"""Jobs submitted over REST in a second: `python -m benchmarks.portal.submissions [--seconds 10]`.

Serves a throw-away PostgreSQL with two web processes, the shipped history, its predictor and 50 nodes. Eight
programs submit at once: first jobs that each need a recommendation of their own, then jobs whose question was
answered before. The yardstick of the same run are rows of jobs inserted by eight plain connections, each row
committed. Aims on two cores: 60 and 150 submissions a second.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.portal.lists import OUR_WORKER, fresh_database
from benchmarks.portal.pages import SMALL
from benchmarks.portal.serving import cpu_s, served

PROGRAMS = 8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.portal.submissions", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    with fresh_database() as found:
        if found:
            measure(given.seconds)
    return 0 if found else 1


def measure(seconds: float) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    from benchmarks.portal.crowd import fill
    from portal.accounts.models import User
    from portal.accounts.services import create_token
    from scheduler.models import DatasetFile, Job, Node

    for command in ("migrate", "load_shipped_history", "train_predictor"):
        call_command(command, verbosity=0)
    fill(**SMALL, now=timezone.now())
    person = User.objects.get(username="person0")
    _, token = create_token(owner=person, name="submits", now=timezone.now())
    file = DatasetFile.objects.filter(owner=person)[0].pk
    alike: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "training_file": file}
    inserted = all_at_once(inserting(Job.objects.order_by("pk")[0].pk), seconds)
    print(f"rows inserted: {inserted / seconds:.0f}/s")
    numbers = itertools.count(100)
    questions: dict[str, Callable[[], dict[str, Any]]] = {
        "with a recommendation each": lambda: {**alike, "params": {"max_steps": next(numbers)}},
        "of an equal question": lambda: alike,
    }
    with served(OUR_WORKER, {**os.environ}) as (port, server):
        for name, body in questions.items():
            Node.objects.update(last_seen_at=timezone.now())
            all_at_once(submitting(port, token, body), 10.0)  # each process loads its predictor
            before = cpu_s(server)
            made = all_at_once(submitting(port, token, body), seconds)
            spent = (cpu_s(server) - before) / made
            print(
                f"{name}: {made / seconds:.1f}/s, {made / inserted:.3f} of the rows inserted,"
                f" {1000 * spent:.0f} ms of CPU each",
                flush=True,
            )


def all_at_once(worker: Callable[[], Callable[[], bool]], seconds: float) -> int:
    """How often all programs together do it.

    worker: makes what one program does again and again; what was refused for the moment does not count.
    """

    def count(_: int) -> int:
        done, act = 0, worker()
        while time.monotonic() < end:
            done += act()
        return done

    end = time.monotonic() + seconds
    with ThreadPoolExecutor(PROGRAMS) as programs:
        return sum(programs.map(count, range(PROGRAMS)))


def submitting(port: int, token: str, body: Callable[[], dict[str, Any]]) -> Callable[[], Callable[[], bool]]:
    def worker() -> Callable[[], bool]:
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def submit() -> bool:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", "/api/jobs/", json.dumps(body()), headers)
            answer = connection.getresponse()
            told = answer.read()
            assert answer.status in (201, 503), (answer.status, told[:300])
            return answer.status == 201

        return submit

    return worker


def inserting(like: str) -> Callable[[], Callable[[], bool]]:
    """Copies of one job's row, under new ids."""
    import psycopg
    from django.db import connection

    from scheduler.models import Job

    names = [field.column for field in Job._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{name}"' for name in names)
    table, numbers = Job._meta.db_table, itertools.count()
    copy = f'INSERT INTO "{table}" (id, {columns}) SELECT %s, {columns} FROM "{table}" WHERE id = %s'
    connection.close()

    def worker() -> Callable[[], bool]:
        plain = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)

        def insert() -> bool:
            plain.execute(copy, [f"ftjob-copy{next(numbers):020}", like])
            return True

        return insert

    return worker


if __name__ == "__main__":
    sys.exit(main())
