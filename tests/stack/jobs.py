"""Jobs for fault tests, and how to catch them at the right moment."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

from scheduler.models import Checkpoint
from tests.harness.stack import PATIENCE_S, Stack, until

# Some 5 s of training on a quiet core; small steps make it quick to stop.
LONG = {"max_steps": 150, "tokens_per_sample": 64, "per_device_batch_size": 2, "effective_batch_size": 2}
# On one slot or on two, as the policy sees fit.
WIDE = {"max_steps": 150, "tokens_per_sample": 64, "effective_batch_size": 2}
SETTLE_S = 3.0  # by when a checkpoint under way has arrived at the portal
FASTER, MANY = 3.0, 40  # than one slot; measurements, more than are added by jobs on two slots
NOWHERE = {"gpu_model": "NVIDIA H100 80GB HBM3"}  # no node here has one: the job waits


def caught_with_a_checkpoint(stack: Stack, checkpoints: int = 1) -> str:
    """The id of a long job that runs and of which the portal holds so many checkpoints."""
    job_id = stack.submit(**LONG)
    stack.client.wait(
        job_id, lambda job: job["internal_state"] == "running", timeout_s=PATIENCE_S, every_s=0.5
    )
    saved(stack, job_id, checkpoints)
    assert stack.client.job(job_id)["internal_state"] == "running", "the job is too short for this test"
    return job_id


def killed_and_started_again(stack: Stack, who: str) -> None:
    """Kill a process, or all trainings, and start the process again.

    who: its name, or `training`.
    """
    if who == "training":
        stack.kill_trainings()
    else:
        stack.kill(who)
        stack[who].start()


def saved(stack: Stack, job: str, checkpoints: int = 1) -> None:
    """Wait for the first checkpoints that the portal holds of the job."""
    until(lambda: len(held_checkpoints(stack, job)) >= checkpoints, what="a checkpoint")


def held_checkpoints(stack: Stack, job: str) -> list[Checkpoint]:
    """The job's checkpoints that may be resumed, the furthest first."""
    return list(Checkpoint.objects.using(stack.alias).filter(job=job, fault="").order_by("-step"))


def settled_checkpoints(stack: Stack, job: str) -> list[Checkpoint]:
    """The checkpoints of a training that stands still, once its last one has arrived."""
    before = held_checkpoints(stack, job)
    time.sleep(SETTLE_S)
    while (now := held_checkpoints(stack, job)) != before:
        before = now
        time.sleep(SETTLE_S)
    return now


def weights_at_the_portal(stack: Stack, checkpoint: Checkpoint) -> Path:
    folder = stack.data / "artifacts" / checkpoint.job_id / str(checkpoint.claim_id)
    return folder / f"checkpoints/step-{checkpoint.step}/weights.safetensors"


def flip_a_byte(path: Path) -> None:
    """Invert the middle byte of a file, in place."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0xFF]))


def ended(stack: Stack, job_id: str, *, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
    job = stack.client.wait(
        job_id, timeout_s=timeout_s, every_s=0.5
    )  # each answer takes from the trainings' time
    assert job["state"] == "succeeded", job["error"]
    return job


def outcomes(job: dict[str, Any]) -> list[str]:
    return [attempt["outcome"] for attempt in job["attempts"]]


def final_loss(job: dict[str, Any]) -> float:
    return float(job["attempts"][-1]["measured"]["final_loss"])


def teach_that_two_slots_are_fast(stack: Stack) -> None:
    """Add measurements by which two slots of a node train a wide job faster than one does.

    On a busy machine they are slower: the portal learns that, and then rightly gives such a job one slot.
    """
    for slots in (1, 2):
        ended(stack, stack.submit(**{**WIDE, "max_steps": 5}, number_gpus=slots))
    exported = stack.admin.http.get("/api/executions.csv", params={"own": "true"}).raise_for_status()
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    one = max(float(row["tokens_per_second"] or 0) for row in rows if row["number_gpus"] == "1")
    two = next(row for row in reversed(rows) if row["number_gpus"] == "2")
    table = io.StringIO()
    writer = csv.DictWriter(table, two)
    writer.writeheader()
    writer.writerows({**two, "tokens_per_second": FASTER * one + number} for number in range(MANY))
    files = {"file": ("two-slots.csv", table.getvalue())}
    stack.admin.http.post("/api/executions/import/", files=files).raise_for_status()
