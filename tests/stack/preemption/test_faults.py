"""A preemption and a resize of real trainings in which agent, worker or training are killed half-way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler.models import Attempt, Checkpoint, Job
from tests.harness.stack import PATIENCE_S, Stack, until
from tests.stack.jobs import LONG, ended, final_loss, outcomes

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


def killed_and_started_again(stack: Stack, who: str) -> None:
    if who == "training":
        stack.kill_trainings()
    else:
        stack.kill(who)
        stack[who].start()


def saved(stack: Stack, job: str) -> None:
    until(Checkpoint.objects.using(stack.alias).filter(job=job).exists, what="a checkpoint")


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


@pytest.fixture
def two_slots(judged: Stack) -> Iterator[None]:
    """A node of two slots, instead of the one that has one."""
    alone = next(node["id"] for node in judged.admin.get("nodes/")["data"] if node["name"] == "alpha")
    judged.start_agent("gamma", slots=2)
    judged.admin.post(f"nodes/{alone}/drain/", {"reason": "test"})
    yield
    judged.admin.post(f"nodes/{alone}/resume/", {"reason": "test"})
    judged.supervisor.children.pop("gamma").stop()


@pytest.mark.usefixtures("two_slots")
@pytest.mark.parametrize("who", ["", "gamma", "worker-control", "training"])
def test_a_job_shrinks_for_another_and_grows_again(judged: Stack, policy_chosen: Any, who: str) -> None:
    """Of two slots an urgent job takes one, and returns it; the effective batch stays the same."""
    params = {"max_steps": 600, "tokens_per_sample": 64, "effective_batch_size": 2}
    policy_chosen("sia", round_s=1.0, min_run_s=1.0)
    wide = judged.submit(**params)
    saved(judged, wide)
    other = judged.admin.submit(
        model="builtin/tiny-llama",
        training_file=judged.admin.upload(judged.root / "corpus.jsonl"),
        params={"max_steps": 20, "number_gpus": 1},
        priority="urgent",
    )["id"]
    if who:
        stopping = Job.objects.using(judged.alias).filter(pk=wide, state="stopping")
        until(stopping.exists, every_s=0.01, what="a resize")
        killed_and_started_again(judged, who)
    job = ended(judged, wide)
    judged.admin.wait(other, timeout_s=PATIENCE_S)
    policy_chosen("fifo")
    alone = ended(judged, judged.submit(**params, number_gpus=1))
    assert final_loss(job) == pytest.approx(final_loss(alone), abs=1e-4)
    tried = Attempt.objects.using(judged.alias).filter(job=wide).order_by("fence")
    assert {1, 2} <= {attempt.promised.gpus for attempt in tried}
