"""A simulation on real workers: asked for over REST, killed in the middle, and ended all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from portal.launch import machine, processes
from scheduler.models import Simulation
from tests.harness.stack import PREPARE, Stack, until

PAST = """
from django.test.utils import setup_test_environment
from django.utils import timezone
from portal.accounts.models import Scope, User
from portal.accounts.services import create_token
from tests.harness import world
from tests.scheduler.past import past
setup_test_environment()  # lets the fake node in
past(world.fake_node(), [300.0 * (1 + number % 7) for number in range(12)], ended=timezone.now())
admin = User.objects.get(username="admin")
_, token = create_token(owner=admin, name="simulations", now=timezone.now(), scope=Scope.ADMIN)
print(json.dumps({"token": token}))
"""


@pytest.fixture
def past_stack(_rows_are_readable: None) -> Iterator[Stack]:
    """Web server, workers and beat over a database with twelve ended jobs; no node agents."""
    made = Stack()
    try:
        made.start_broker()
        code = [sys.executable, "-c", PREPARE + PAST]
        done = subprocess.run(code, env=made.supervisor.env, check=True, stdout=subprocess.PIPE, text=True)
        made.token = json.loads(done.stdout.splitlines()[-1])["token"]
        made.supervisor.start(processes.web("127.0.0.1", made.port))
        for queue in ("control", "work"):
            made.supervisor.start(processes.worker(queue))
        made.supervisor.start(processes.beat())
        machine.wait_until_served(made.url)
        yield made
    finally:
        made.stop()


def test_a_killed_worker_delays_a_simulation_and_loses_nothing(past_stack: Stack) -> None:
    policies = ["fifo", "pollux", "sjf"]
    url, auth = f"{past_stack.url}/api/simulations/", {"Authorization": f"Bearer {past_stack.token}"}
    body = {"policies": policies, "cluster": "cpu:2x8"}
    made = httpx.post(url, json=body, headers=auth, timeout=30).raise_for_status().json()

    def now() -> Simulation:
        return Simulation.objects.using(past_stack.alias).get(pk=made["id"])

    until(lambda: len(now().results) == 1 and now().leased_until, every_s=0.01, what="the second policy")
    past_stack.kill("worker-work")
    assert now().state == "running"
    past_stack["worker-work"].start()
    until(lambda: now().ended, timeout_s=150, every_s=0.5, what="the simulation's end")
    answer: dict[str, Any] = httpx.get(f"{url}{made['id']}/", headers=auth, timeout=30).json()
    assert (answer["state"], answer["message"]) == ("done", "")
    assert [one["policy"] for one in answer["results"]] == policies
    assert [one["jobs"] for one in answer["results"]] == [12, 12, 12]
