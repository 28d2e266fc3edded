"""A simulation on real workers.

It is requested over REST, killed in the middle, and ends all the same.
"""

from __future__ import annotations

import pytest

from scheduler.models import Simulation
from tests.harness.stack import Stack, until
from tests.stack.past import DURATIONS_S, ENDED

pytestmark = pytest.mark.stack


def test_a_killed_worker_delays_a_simulation_and_loses_nothing(judged: Stack) -> None:
    policies = ["fifo", "pollux", "sjf"]
    body = {"policies": policies, "cluster": "cpu:2x8", "until": ENDED.isoformat()}
    made = judged.admin.post("simulations/", body)

    def now() -> Simulation:
        return Simulation.objects.using(judged.alias).get(pk=made["id"])

    until(lambda: len(now().results) == 1 and now().leased_until, every_s=0.01, what="the second policy")
    judged.kill("worker-work")
    assert now().state == "running"
    judged["worker-work"].start()
    until(lambda: now().ended, every_s=0.5, what="the simulation's end")
    answer = judged.admin.get(f"simulations/{made['id']}/")
    assert (answer["state"], answer["message"]) == ("done", "")
    assert [one["policy"] for one in answer["results"]] == policies
    assert [one["jobs"] for one in answer["results"]] == [len(DURATIONS_S)] * 3
