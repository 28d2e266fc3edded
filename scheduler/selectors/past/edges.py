"""Jobs that held or awaited GPUs already when a range of the past begins.

They are played beside the jobs of the range, whose places they took, and do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from scheduler.models import Attempt, Job
from scheduler.selectors.trace import past_jobs
from scheduler.simulator.inputs.trace import TraceJob


def edge_jobs(begin: datetime, seen_at: datetime) -> list[Job]:
    """The jobs submitted before the range begins that ended after it began.

    Jobs that go on are left out: knowledge of them changes, and every policy has to play the same.
    """
    return list(past_jobs(until=begin, ended_by=seen_at).filter(ended_at__gt=begin))


def from_its_start(
    played: TraceJob, attempts: Sequence[Attempt], origin: datetime, begin: datetime
) -> TraceJob:
    """A job from before the range, which starts no sooner than it really did.

    The jobs that it had to wait for before the range are not played.
    """
    if played.submit_s >= (begin - origin).total_seconds():
        return played
    first = min(attempt.created_at for attempt in attempts)
    starts_s = (min(first, begin) - origin).total_seconds()
    return replace(played, begin_s=max(played.begin_s or 0.0, starts_s))
