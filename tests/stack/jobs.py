"""Jobs for fault tests, and how to catch them at the right moment."""

from __future__ import annotations

from typing import Any

from scheduler.models import Checkpoint
from tests.harness.stack import PATIENCE_S, Stack, until

# Some 5 s of training on a quiet core; small steps make it quick to stop.
LONG = {"max_steps": 150, "tokens_per_sample": 64, "per_device_batch_size": 2, "effective_batch_size": 2}
NOWHERE = {"gpu_model": "NVIDIA H100 80GB HBM3"}  # no node here has one: the job waits


def caught_with_a_checkpoint(stack: Stack) -> str:
    """The id of a long job that runs and whose first checkpoint the portal holds."""
    job_id = stack.submit(**LONG)
    stack.client.wait(
        job_id, lambda job: job["internal_state"] == "running", timeout_s=PATIENCE_S, every_s=0.5
    )
    until(lambda: Checkpoint.objects.using(stack.alias).filter(job=job_id).exists(), what="a checkpoint")
    assert stack.client.job(job_id)["internal_state"] == "running", "the job is too short for this test"
    return job_id


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
