"""A job on two slots leaves one to another and takes it back, while processes are killed half-way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.models import Attempt, Job
from tests.harness.stack import PATIENCE_S, Stack, until
from tests.stack.jobs import (
    WIDE,
    ended,
    final_loss,
    killed_and_started_again,
    saved,
    teach_that_two_slots_are_fast,
)

pytestmark = [pytest.mark.stack, pytest.mark.slow]
WIDER = {**WIDE, "max_steps": 600}


@pytest.fixture(scope="module")
def two_slots(stack: Stack) -> Iterator[Stack]:
    """The stack with a fast node of two slots, instead of the one that has one."""
    alone = next(node["id"] for node in stack.admin.get("nodes/")["data"] if node["name"] == "alpha")
    stack.start_agent("gamma", slots=2)
    stack.admin.post(f"nodes/{alone}/drain/", {"reason": "test"})
    teach_that_two_slots_are_fast(stack)
    yield stack
    stack.admin.post(f"nodes/{alone}/resume/", {"reason": "test"})
    stack.supervisor.children.pop("gamma").stop()


@pytest.fixture(scope="module")
def loss_on_one_slot(two_slots: Stack) -> float:
    return final_loss(ended(two_slots, two_slots.submit(**WIDER, number_gpus=1)))


@pytest.mark.parametrize("who", ["", "gamma", "worker-control", "training"])
def test_a_job_shrinks_for_another_and_grows_again(
    two_slots: Stack, loss_on_one_slot: float, judged: Stack, policy_chosen: Any, who: str
) -> None:
    """Of two slots an urgent job takes one, and returns it; the effective batch stays the same."""
    policy_chosen("sia", round_s=1.0, min_run_s=1.0)
    wide = judged.submit(**WIDER)
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
    assert final_loss(job) == pytest.approx(loss_on_one_slot, abs=1e-4)
    tried = Attempt.objects.using(judged.alias).filter(job=wide).order_by("fence")
    assert {1, 2} <= {attempt.promised.gpus for attempt in tried}
