"""Jobs as lines of a table: what every list of jobs shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.models import Job
from scheduler.selectors.job_outcome import actual_of
from scheduler.selectors.public_states import shown_state
from scheduler.states import TERMINAL, JobState


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job, its public state, how far it is (0..100), and what it cost, or is expected to."""

    job: Job
    state: str
    percent: int | None
    cost: float | None

    @property
    def ended(self) -> bool:
        return self.job.state in TERMINAL


def rows_of(jobs: Iterable[Job]) -> list[JobRow]:
    """Lines of jobs that were read by `selectors.jobs.with_costs`."""
    return [JobRow(job, shown_state(job), percent(job), _cost(job)) for job in jobs]


def percent(job: Job) -> int | None:
    """Progress in whole percent; None before the number of steps is known."""
    if job.state == JobState.SUCCEEDED:
        return 100
    return min(100, round(100 * job.step / job.total_steps)) if job.total_steps else None


def _cost(job: Job) -> float | None:
    """None where nodes have no price."""
    if job.state in TERMINAL:
        return sum(actual_of(attempt)["cost"] or 0.0 for attempt in job.attempts.all()) or None
    return promised.cost.value or None if (promised := job.promised) else None
