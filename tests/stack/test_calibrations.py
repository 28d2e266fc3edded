"""A calibration on real workers and a real node.

It is begun over REST, its worker is killed, and it ends all the same.
"""

from __future__ import annotations

import pytest

from scheduler.models import Calibration, Node
from tests.harness.stack import Stack, until

pytestmark = [pytest.mark.stack, pytest.mark.slow]  # a killed worker's simulation shows the same


def test_a_killed_worker_delays_a_calibration_and_loses_nothing(judged: Stack) -> None:
    node = Node.objects.using(judged.alias).get(state="ready")
    body = {"budget_s": 300, "models": ["builtin/tiny-llama"], "runs": 2}
    made = judged.admin.post(f"nodes/{node.pk}/calibrations/", body)
    rows = Calibration.objects.using(judged.alias).filter(pk=made["id"])

    until(lambda: rows.get().jobs.exists(), what="the first run")
    judged.kill("worker-work")
    judged["worker-work"].start()
    until(lambda: rows.get().ended_at, every_s=0.5, what="the calibration's end")
    answer = judged.admin.get(f"nodes/{node.pk}/calibrations/{made['id']}/")
    assert (answer["state"], answer["reason"]) == ("done", "")
    assert (answer["planned"], answer["submitted"], answer["ended"]) == (2, 2, 2)
    assert {run["status"] for run in answer["measured"]} == {"ok"}
    assert answer["judged_runs"] == 2
