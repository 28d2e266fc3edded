"""A portal with a past: jobs that ran and ended, at stated times."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler.models import Attempt, Job, Metric
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step


def ended_job(node: FakeNode, *, ran_s: float) -> Job:
    """A job that ran on one slot for so long."""
    job = world.placed_job(node, params={"number_gpus": 1})
    order = node.take_up()
    node.run(order, step(1))
    node.end(order, "succeeded", result())
    attempt = job.attempts.get()
    attempt.ended_at = attempt.running_at + timedelta(seconds=ran_s)
    attempt.save()
    job.refresh_from_db()
    return job


def past(node: FakeNode, durations_s: list[float], *, ended: datetime) -> list[Job]:
    """Create jobs that were submitted in one-minute steps up to `ended`.

    All of them had ended by then.
    """
    jobs = [ended_job(node, ran_s=1) for _ in durations_s]
    for number, (job, ran_s) in enumerate(zip(jobs, durations_s, strict=True)):
        submitted = ended - timedelta(minutes=len(jobs) - number)
        Job.objects.filter(pk=job.pk).update(submitted_at=submitted, ended_at=ended)
        Attempt.objects.filter(job=job).update(
            created_at=submitted, running_at=submitted, ended_at=submitted + timedelta(seconds=ran_s)
        )
        Metric.objects.filter(attempt__job=job).update(at=submitted)
    return jobs
