"""Many users and processes at once for a while.

Two schedulers, users, administrators, and three nodes that each speak twice.

`STORM_S=60 STORM_SEED=7 pytest -m slow tests/scheduler/loop/test_storm.py`, best on PostgreSQL.

Leases and deadlines are seconds, so that they run out; nodes repeat old messages and fall
silent. The rows decide.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from portal.clock import database_now
from scheduler.errors import SchedulerError
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Job, Node
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.services.policy import choose_policy
from scheduler.states import TERMINAL
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.harness.invariants import assert_sound
from trainer.protocol import PROTOCOL

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
STORM_S = float(os.environ.get("STORM_S", "20"))
SEED = os.environ.get("STORM_SEED", "1")
SHORT_S = {"NODE_SUSPECT_S": 1.0, "NODE_LOST_S": 1.5, "STOP_GRACE_S": 1.0, "ASSIGNED_TIMEOUT_S": 3.0}
LONG = {"max_steps": 100_000}
SHAPES = (LONG, {**LONG, "number_gpus": 1}, {**LONG, "number_gpus": 2}, {**LONG, "number_nodes": 2})
AT_ONCE = {"min_run_s": 0.0, "cooldown_s": 0.5, "limit": 100}  # a job that received less stops others
ENDS = ("succeeded", "error", "oom", "killed", "declined", "timeout")
VERBS = (cancel_job, *[pause_job] * 4, *[resume_job] * 8)


class Agent:
    """A node's agent as far as messages go; two of them share a node and its boot id."""

    def __init__(self, node: FakeNode) -> None:
        self.node, self.client = node, Client()
        self.claims: dict[str, dict[str, Any]] = {}
        self.said: list[dict[str, Any]] = []

    def __call__(self, rng: random.Random) -> None:
        if rng.random() < 0.02:
            time.sleep(2.5)  # longer than a lease
        again = self.said and rng.random() < 0.2
        body = rng.choice(self.said) if again else self._message(rng)
        self.said = [*self.said[-9:], body]
        answer = self.client.post(
            "/agent/v1/sync", json.dumps(body), content_type="application/json", headers=self.node.headers
        )
        assert answer.status_code == 200, answer.content
        self._obey({order["claim"]: order for order in answer.json()["claims"]}, rng)
        time.sleep(0.03)

    def _message(self, rng: random.Random) -> dict[str, Any]:
        for claim in self.claims.values():
            claim["reports"] = []
            if claim["phase"] != "ended" and rng.random() < 0.5:
                number = claim.pop("acked") + 1
                claim |= {"phase": "running", "acked": number, "reports": [{"seq": number, **step(number)}]}
            if claim["phase"] != "ended" and rng.random() < 0.12:
                claim |= {"phase": "ended", "outcome": rng.choice(ENDS)}
        claims = [dict(claim) for claim in self.claims.values()]
        return {"protocol": PROTOCOL, "boot_id": "one", "claims": claims}

    def _obey(self, orders: dict[str, Any], rng: random.Random) -> None:
        fresh = {name for name, order in orders.items() if not order.get("error")}
        self.claims = {name: claim for name, claim in self.claims.items() if name in fresh}
        for name in fresh:
            order = orders[name]
            if name not in self.claims and order.get("spec"):
                self.claims[name] = {"claim": name, "fence": order["fence"], "phase": "starting"}
            if claim := self.claims.get(name):
                claim["acked"] = order["acked_seq"]
                if order["want"] == "stop" and claim["phase"] != "ended" and rng.random() < 0.7:
                    claim |= {"phase": "ended", "outcome": "stopped"}


def storm(calls: list[Callable[[random.Random], Any]]) -> None:
    """Call each function again and again from a thread of its own.

    Errors other than refusals reach pytest.
    """
    until = time.monotonic() + STORM_S

    def blow(call: Callable[[random.Random], Any], seed: str) -> None:
        rng = random.Random(seed)
        try:
            while time.monotonic() < until:
                with suppress(SchedulerError):  # refused in this state
                    call(rng)
        finally:
            connection.close()

    threads = [threading.Thread(target=blow, args=(call, f"{SEED}/{n}")) for n, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("policy", "parameters"), [("fifo", {}), ("las", AT_ONCE)])
def test_whatever_happens_at_once_the_rows_are_sound(
    settings: Any, policy: str, parameters: dict[str, float]
) -> None:
    """F15 to F17, I2 to I9, I11, I18"""
    settings.MAX_NODES_PER_JOB = 2
    for name, seconds in SHORT_S.items():
        setattr(settings, name, seconds)
    nodes = [world.fake_node(slots=2) for _ in range(3)]
    owner, admin = world.user(), world.admin()
    file = world.data_file(owner)
    choose_policy(name=policy, parameters=parameters, actor=admin, reason="storm", now=database_now())

    def submit(rng: random.Random) -> None:
        if Job.objects.exclude(state__in=TERMINAL).count() < 10:
            world.job(owner, training_file=file, retries=1, params=rng.choice(SHAPES))
        time.sleep(0.1)

    def ask(rng: random.Random) -> None:
        if open_jobs := list(Job.objects.exclude(state__in=TERMINAL)):
            rng.choice(VERBS)(job=rng.choice(open_jobs), actor=owner, now=database_now())
        time.sleep(0.3)

    def administer(rng: random.Random) -> None:
        node = Node.objects.get(pk=rng.choice(nodes).node_id)
        about: dict[str, Any] = {"node": node, "actor": admin, "reason": "storm", "now": database_now()}
        resume_node(**about) if rng.random() < 0.9 else drain_node(**about, move_jobs=True)
        time.sleep(0.1)

    def schedule(rng: random.Random) -> None:
        tick()
        time.sleep(0.1 * rng.random())

    agents = [Agent(node) for node in nodes for _ in range(2)]
    storm([schedule, schedule, submit, ask, ask, administer, lambda _: refresh_options(), *agents])
    assert Attempt.objects.exists()
    assert Attempt.objects.filter(stopped_for__isnull=False).exists() == bool(parameters)
    assert_sound()
