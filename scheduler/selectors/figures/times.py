"""When and for how long.

docs/figures.md says it of state, since, waiting, start-up, duration and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from knowledge.core.domain.types import Interval
from scheduler.models import Attempt, Job
from scheduler.selectors.public_states import shown_state
from scheduler.states import QUEUED, JobState


class JobStage(StrEnum):
    """What a running job does before it trains."""

    STARTING = "starting"  # process, model, data


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The seconds that a job will still take, and when it ends.

    The bounds are those of an 80 % interval.
    """

    now: datetime
    left: Interval

    @property
    def at(self) -> datetime:
        return self.now + timedelta(seconds=self.left.value)

    @property
    def earliest(self) -> datetime:
        return self.now + timedelta(seconds=self.left.low or 0.0)

    @property
    def latest(self) -> datetime:
        return self.now + timedelta(seconds=self.left.high or self.left.value)


def since(job: Job) -> datetime:
    """When the job began to be in the state that people see."""
    return job.shown_since or job.state_since


def stage(job: Job) -> str:
    """The stage of a running job before it trains; empty otherwise."""
    return JobStage.STARTING if job.state == JobState.STARTING else ""


def waiting_s(job: Job, now: datetime) -> float:
    """All the time in which it was queued, up to `now` if it still is."""
    return job.waited_s + (lasted_s(job.state_since, now) if shown_state(job) == QUEUED else 0.0)


def startup_s(attempts: Sequence[Attempt], now: datetime) -> float:
    """The time of all attempts that have begun before they trained."""
    return sum(
        lasted_s(attempt.begun_at, attempt.running_at or attempt.ended_at or now)
        for attempt in attempts
        if attempt.begun_at
    )


def duration_s(attempts: Sequence[Attempt], now: datetime) -> float:
    """The time of all attempts from their beginnings to their ends, or to `now`."""
    return sum(max(0.0, attempt.lasted_s(now)) for attempt in attempts)


def ending(job: Job, attempts: Sequence[Attempt], now: datetime, *, silent: bool) -> Ending | None:
    """Return when a running job will end.

    None for any other, for one of which nothing is heard, and where nothing was promised or measured.
    """
    if silent or job.state not in (JobState.STARTING, JobState.RUNNING):
        return None
    live = next((attempt for attempt in attempts if attempt.ended_at is None), None)
    left = live.left(now) if live else None
    return None if left is None else Ending(now=now, left=left)


def lasted_s(start: datetime, end: datetime) -> float:
    """Seconds from one to the other; 0 where the clock was set back between them."""
    return max(0.0, (end - start).total_seconds())
