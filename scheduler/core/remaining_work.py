"""Remaining work of a job.

It follows from what its attempt measured or its options promise: no new prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from knowledge.core.domain.types import Option
from scheduler.core.types import JobInfo


def option_of(job: JobInfo) -> Option | None:
    """The option it runs with, or the best it could have."""
    if job.holds:
        return job.holds.option
    return job.options[0] if job.options else None


def remaining_s(job: JobInfo, option: Option | None = None) -> float:
    """Return the seconds left with this option, restart included; inf if unknown.

    It is over by its time limit at the latest. Without an option the job's own counts. A duration of 0 is
    how knowledge says that it predicts nothing.
    """
    if job.holds and option in (None, job.holds.option):
        left_s = job.releases_in_s
        return inf if left_s is None else left_s
    chosen = option or option_of(job)
    if chosen is None:
        return inf
    left = job.work_left * chosen.duration_s.value if chosen.duration_s.value > 0 else inf
    left += job.restart_s if job.holds is None and job.first_started_at is not None else 0.0
    return left if job.run_left_s is None else min(left, job.run_left_s)


def remaining_gpu_s(job: JobInfo) -> float:
    """GPU-seconds left; inf if unknown."""
    option = option_of(job)
    return inf if option is None else remaining_s(job) * option.gpus


def known_rates(options: Sequence[Option]) -> list[float]:
    """Return the tokens/s of each option.

    Where nothing is predicted, the smallest counts as 1 and the others as 0, so that such a job
    is served with the fewest GPUs that it can use.
    """
    found = [option.tokens_per_second.value for option in options]
    if any(rate > 0 for rate in found):
        return found
    fewest = min((option.gpus for option in options), default=0)
    return [float(option.gpus == fewest) for option in options]
