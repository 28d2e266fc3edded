"""How a training goes.

docs/figures.md says it of progress, speed, loss and memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.models import Attempt, Job
from scheduler.states import TERMINAL, JobState


def attempt_that_counts(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the live attempt, else the last that trained, else the last.

    Attempts are in order of fences.
    """
    if not attempts or attempts[-1].ended_at is None:
        return attempts[-1] if attempts else None
    trained = [attempt for attempt in attempts if attempt.running_at is not None]
    return (trained or attempts)[-1]


def percent(job: Job) -> int | None:
    """Progress in whole per cent; None before the number of steps is known."""
    if job.state == JobState.SUCCEEDED:
        return 100
    return min(100, round(100 * job.step / job.total_steps)) if job.total_steps else None


def speed(job: Job, attempts: Sequence[Attempt], *, silent: bool) -> float | None:
    """Return tokens per second.

    They are those of now while it trains and is heard of, and those of the attempt that counts once it has
    ended.
    """
    if job.state == JobState.RUNNING:
        return None if silent else job.tokens_per_second
    counts = attempt_that_counts(attempts) if job.state in TERMINAL else None
    return counts.figures.tokens_per_s if counts else None


def peak_memory_bytes(attempts: Sequence[Attempt]) -> int | None:
    """The highest peak on one GPU of the attempt that counts."""
    counts = attempt_that_counts(attempts)
    return counts.peak_memory_bytes if counts else None
