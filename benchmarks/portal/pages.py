"""How long pages take on a large portal: `python -m benchmarks.portal.pages [--small]`.

Fills a throw-away PostgreSQL and asks for every page as an administrator and as a person through Django's
test client, so that neither network nor browser counts. Aim: p95 below 200 ms, pages below 100 kB.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.harness.servers import NotInstalled, Postgres

SIZES = {"jobs": 100_000, "nodes": 1_000, "executions": 50_000, "people": 50}
SMALL = {"jobs": 2_000, "nodes": 50, "executions": 1_000, "people": 5}
PATHS = (
    "/", "/jobs/", "/jobs/?state=failed", "/jobs/?q=job+77", "/jobs/new/", "{job}", "{job}?tab=attempts",
    "/queue/", "/nodes/", "/nodes/?state=ready&gpu=L40S&q=9", "{node}", "/policy/", "/teams/", "/tokens/",
    "/analytics/?range=24h", "/analytics/", "/analytics/?range=all",
    "/analytics/predictions/?range=7d", "/analytics/predictions/", "/analytics/spending/?range=all",
)  # fmt: skip
FOR_ADMINISTRATORS = ("/users/", "/users/?q=person4", "/audit/", "/audit/?action=drain&text=999")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.portal.pages", description=__doc__)
    parser.add_argument("--small", action="store_true", help=f"only {SMALL}")
    parser.add_argument("--requests", type=int, default=40)
    given = parser.parse_args()
    try:
        postgres = Postgres()
    except NotInstalled as missing:
        print(f"{missing} is not on this machine.", file=sys.stderr)
        return 1
    os.environ |= {"DATABASE_URL": postgres.url, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    os.environ |= {"DATA_DIR": str(postgres.root), "LOG_LEVEL": "ERROR", "OMP_NUM_THREADS": "1"}
    (postgres.root / "static").mkdir()  # WhiteNoise warns where there is none
    try:
        measure(SMALL if given.small else SIZES, given.requests)
    finally:
        postgres.remove()
    return 0


def measure(sizes: dict[str, int], requests: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.utils import timezone

    from benchmarks.portal.crowd import fill
    from portal.accounts.models import User

    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    fill(**sizes, now=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(f"{sizes} in {time.perf_counter() - began:.0f} s")
    User.objects.create_superuser("root")
    print(f"{'who':<8} {'page':<34} {'first ms':>8} {'p50 ms':>7} {'p95 ms':>7} {'kB':>6} {'queries':>8}")
    for name, paths in (("root", PATHS + FOR_ADMINISTRATORS), ("person0", PATHS)):
        client = Client(SERVER_NAME="localhost")
        user = User.objects.get(username=name)
        client.force_login(user)
        objects = shown_objects(user)
        for path in paths:
            show(name, path, path.format(**objects), client, requests)


def shown_objects(user: Any) -> dict[str, str]:
    """Return the pages of an ended job and of its node.

    The user may see the job.
    """
    from scheduler.models import Claim
    from scheduler.selectors.jobs import visible_jobs

    job = visible_jobs(user).filter(state="succeeded").order_by("-pk")[0]
    node = Claim.objects.filter(attempt__job=job).values_list("node_id", flat=True)[0]
    return {"job": f"/jobs/{job.pk}/", "node": f"/nodes/{node}/"}


def show(name: str, title: str, path: str, client: object, requests: int) -> None:
    from django.db import connection

    get = client.get  # type: ignore[attr-defined]
    fetched: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        fetched.append(sql)
        return execute(sql, *more)

    began = time.perf_counter()
    with connection.execute_wrapper(note):
        answer = get(path)
    first = 1000 * (time.perf_counter() - began)
    assert answer.status_code == 200, (path, answer.status_code)
    times = []
    for _ in range(requests):
        began = time.perf_counter()
        get(path)
        times.append(1000 * (time.perf_counter() - began))
    times.sort()
    p50, p95 = (times[math.ceil(share * requests) - 1] for share in (0.5, 0.95))  # nearest rank
    size = len(answer.content) / 1000
    print(
        f"{name:<8} {title:<34} {first:>8.0f} {p50:>7.0f} {p95:>7.0f} {size:>6.0f} {len(fetched):>8}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
