"""Remaining work of a job by the promise of its options: pure reading, no new prediction."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from knowledge.core.domain.types import Option
from scheduler.core.types import Job


def option_of(job: Job) -> Option | None:
    """The option it runs with, or the best it could have."""
    if job.holds:
        return job.holds.option
    return job.options[0] if job.options else None


def remaining_s(job: Job, option: Option | None = None) -> float:
    """Seconds left with this option (its own if none is given), restart included; inf if unknown.

    A duration of 0 is how knowledge says that it foretells nothing.
    """
    chosen = option or option_of(job)
    if chosen is None or not chosen.duration_s.value > 0:
        return inf
    left = job.work_left * chosen.duration_s.value
    return left + job.restart_s if job.holds is None and job.first_started_at is not None else left


def remaining_gpu_s(job: Job) -> float:
    """GPU-seconds left; inf if unknown."""
    option = option_of(job)
    return inf if option is None else remaining_s(job) * option.gpus


def known_rates(options: Sequence[Option]) -> list[float]:
    """Tokens/s of each option. Where nothing is predicted, the smallest counts as 1 and the others as 0.

    So a job about which nothing is known is served, with as little as it can do with.
    """
    found = [option.tokens_per_second.value for option in options]
    if any(rate > 0 for rate in found):
        return found
    fewest = min((option.gpus for option in options), default=0)
    return [float(option.gpus == fewest) for option in options]
