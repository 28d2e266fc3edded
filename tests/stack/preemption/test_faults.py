"""A preemption of real trainings in which agent, worker or training are killed half-way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.models import Attempt, Job
from tests.harness.stack import Stack, until
from tests.stack.jobs import LONG, ended, final_loss, killed_and_started_again, outcomes, saved

pytestmark = [pytest.mark.stack, pytest.mark.slow]
LONGER = {**LONG, "max_steps": 300}
# Queues that end after seconds; only the second job stops the other.
SINKING = {"limits_gpu_s": [4.0, 1e6], "promotion": 0, "min_run_s": 1.0, "limit": 1, "cooldown_s": 1e4}
BEGUN = ("assigned", "starting")
Rows = Callable[[], bool]


@pytest.fixture(scope="module")
def longer_loss(stack: Stack) -> float:
    """The final loss of the job when nothing happens to it."""
    return final_loss(ended(stack, stack.submit(**LONGER)))


def moments(stack: Stack, victim: str, taker: str) -> dict[str, Rows]:
    """Whether a preemption is at that step."""
    jobs, attempts = Job.objects.using(stack.alias), Attempt.objects.using(stack.alias)
    again = attempts.filter(job=victim, fence=2, ended_at=None)
    return {
        "the victim is asked to leave": jobs.filter(pk=victim, state="stopping").exists,
        "the other starts": jobs.filter(pk=taker, state__in=BEGUN).exists,
        "the other runs": jobs.filter(pk=taker, state="running", step__gt=0).exists,
        "the victim goes on": again.filter(job__state__in=BEGUN).exists,
    }


@pytest.mark.parametrize("who", ["alpha", "worker-control", "training"])
@pytest.mark.parametrize(
    "step", ["the victim is asked to leave", "the other starts", "the other runs", "the victim goes on"]
)
def test_a_death_in_the_middle_of_a_preemption_costs_no_learning(
    judged: Stack, policy_chosen: Any, longer_loss: float, step: str, who: str
) -> None:
    policy_chosen("tiresias", **SINKING)
    victim = judged.submit(**LONGER)
    saved(judged, victim)
    taker = judged.submit(**LONGER)
    until(moments(judged, victim, taker)[step], every_s=0.01, what=step)
    killed_and_started_again(judged, who)
    jobs = [ended(judged, job) for job in (victim, taker)]
    assert [final_loss(job) for job in jobs] == [longer_loss, longer_loss]
    found = {outcome for job in jobs for outcome in outcomes(job)}
    assert found <= {"stopped", "killed", "lost", "succeeded", "declined", "timeout"}
