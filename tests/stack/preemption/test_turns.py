"""Two real trainings take turns on one slot, and learn what they would have learnt undisturbed."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Attempt
from tests.harness.stack import Stack
from tests.stack.jobs import LONG, ended, final_loss, outcomes, saved

pytestmark = pytest.mark.stack
LONGER = {**LONG, "max_steps": 300}
# Queues that end after seconds, so that jobs of seconds sink through them.
FAST = {"limits_gpu_s": [4.0, 1e6], "promotion": 0, "min_run_s": 1.0, "limit": 1}


@pytest.mark.slow
def test_two_jobs_preempt_each_other_and_learn_the_same(judged: Stack, policy_chosen: Any) -> None:
    """The second stops the first, sinks into the same queue, and is stopped by the first in turn."""
    undisturbed = final_loss(ended(judged, judged.submit(**LONGER)))
    policy_chosen("tiresias", **FAST, cooldown_s=10_000.0)
    first = judged.submit(**LONGER)
    saved(judged, first)
    second = judged.submit(**LONGER)
    saved(judged, second)
    policy_chosen("tiresias", **FAST, cooldown_s=1.0)  # the first may stop others from now on
    jobs = [ended(judged, job) for job in (first, second)]
    for job in jobs:
        assert outcomes(job) == ["stopped", "succeeded"]
        assert job["attempts"][1]["resume_step"] > 0
        assert final_loss(job) == undisturbed
    stopped = Attempt.objects.using(judged.alias).filter(job__in=[first, second], outcome="stopped")
    assert dict(stopped.values_list("job", "stopped_for")) == {first: second, second: first}
