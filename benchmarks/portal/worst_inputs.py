"""Whether eight people at one address leave room for a ninth: `python -m benchmarks.portal.worst_inputs`.

Needs the environment of the tests (`run.py setup --dev`). Fills a throw-away SQLite with 2,000 jobs and a log
of 4.5 MB, starts the portal's web server, and drives each address that answers GET with its largest input by
eight clients at once, again and again for two seconds, while a ninth asks for `/api/me/`. Printed are the
ninth one's longest wait beside its wait on the idle server, worst address first. On a machine that is busy
with other work the ninth waits for that work.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.harness.servers import free_port

SIZES = {"jobs": 2_000, "nodes": 50, "executions": 1_000, "people": 5}
CHATTY = "step 1/10 [#####     ] loss=1.2 red\n" * 1750
PEOPLE, LASTS_S = 8, 2.0
QUERIES = {
    "questions/": "?q=how+far+is+it%3F",
    "metrics/": "?limit=5000",
    "tabs/log/": "?q=zz",
    "log/": "?offset=4000000",
}
GAP = re.compile(r"\{(\w+)\}")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "portal.settings", "DATA_DIR": folder, "LOG_LEVEL": "ERROR"}
        os.environ |= {"OMP_NUM_THREADS": "1", "RATE_LIMIT": "1000000/min"}
        (Path(folder) / "static").mkdir()
        token, session, addresses = prepared()
        port = free_port()
        command = [sys.executable, "-m", "gunicorn", "portal.wsgi", f"--bind=127.0.0.1:{port}"]
        server = subprocess.Popen(
            [*command, "-c", "python:portal.configuration.gunicorn", "--log-level=error"]
        )
        try:
            measure(f"http://127.0.0.1:{port}", token, session, addresses)
        finally:
            server.terminate()
            server.wait()
    return 0


def prepared() -> tuple[str, str, list[str]]:
    """Fill the database; return an administrator's token and session, and the addresses to ask."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from benchmarks.portal.crowd import fill
    from portal.accounts.models import Scope, User
    from portal.accounts.services import create_token
    from portal.clock import database_now
    from scheduler.models import Claim, DatasetFile, LogPiece
    from tests.portal.access.addresses import all_addresses

    call_command("migrate", verbosity=0)
    now = database_now()
    fill(**SIZES, now=now)
    claim = Claim.objects.filter(attempt__outcome="succeeded").select_related("attempt")[0]
    for seq in range(72):
        LogPiece.objects.create(claim=claim, seq=seq, text=CHATTY, at=now)
    admin = User.objects.create_superuser("root")
    _, token = create_token(owner=admin, name="worst inputs", scope=Scope.ADMIN, now=now)
    browser = Client()
    browser.force_login(admin)
    file = DatasetFile.objects.values_list("pk", flat=True)[0]
    known = {"job": claim.attempt.job_id, "node": claim.node_id, "file": file, "user": str(admin.pk)}
    return token, browser.cookies["sessionid"].value, sorted(set(filled(all_addresses(), known)))


def filled(addresses: list[str], known: dict[str, str]) -> Iterator[str]:
    """The addresses whose gaps have objects here, with the dearest query each takes."""
    for address in addresses:
        if address.startswith("/agent/") or not set(GAP.findall(address)) <= set(known):
            continue
        path = GAP.sub(lambda gap: known[gap[1]], address)
        query = next((more for end, more in QUERIES.items() if path.endswith(end)), "")
        yield path + (query or ("?limit=100" if path.startswith("/api/") else ""))


def measure(base: str, token: str, session: str, addresses: list[str]) -> None:
    options: dict[str, Any] = {"base_url": base, "trust_env": False, "timeout": 120}
    ninth = httpx.Client(**options, headers={"Authorization": f"Bearer {token}"})
    for _ in range(600):
        try:
            ninth.get("/api/me/")
            break
        except httpx.TransportError:
            time.sleep(0.1)
    idle_s = statistics.median(waited_s(ninth) for _ in range(50))
    found = []
    for address in addresses:
        by_token = address.startswith(("/api/", "/metrics"))
        asker = httpx.Client(
            **options,
            headers={"Authorization": f"Bearer {token}"} if by_token else {},
            cookies={} if by_token else {"sessionid": session},
        )
        first = asker.get(address)
        if first.status_code == 405:
            continue
        found.append((*driven(asker, ninth, address), first.status_code, address))
    print(
        f"idle: {1000 * idle_s:.1f} ms\n{'ninth ms':>9} {'of idle':>8} {'answers':>8} {'status':>7}  address"
    )
    for longest_s, answers, status, address in sorted(found, reverse=True):
        print(f"{1000 * longest_s:9.0f} {longest_s / idle_s:8.0f} {answers:8} {status:7}  {address}")


def driven(asker: httpx.Client, ninth: httpx.Client, address: str) -> tuple[float, int]:
    """Return the ninth one's longest wait in s, and how many answers the eight had."""
    ends, answers, lock = time.monotonic() + LASTS_S, 0, threading.Lock()

    def drive() -> None:
        nonlocal answers
        while time.monotonic() < ends:
            asker.get(address)
            with lock:
                answers += 1

    people = [threading.Thread(target=drive) for _ in range(PEOPLE)]
    for person in people:
        person.start()
    longest_s = 0.0
    while any(person.is_alive() for person in people):
        longest_s = max(longest_s, waited_s(ninth))
        time.sleep(0.02)
    return longest_s, answers


def waited_s(client: httpx.Client) -> float:
    began = time.perf_counter()
    while client.get("/api/me/").status_code != 200:  # refused after three seconds without a thread
        time.sleep(0.1)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
