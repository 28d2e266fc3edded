"""The cost of stopping a job now.

It also tells how often and when it was stopped for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import median

from django.conf import settings
from django.db.models import Max, QuerySet

from scheduler.models import Attempt, Checkpoint, Job
from scheduler.states import LIVE
from trainer.strict_json import is_number

SAVINGS_IN_A_GRACE = 2  # a stop that leaves time for so many loses no work


def restart_s(attempts: Sequence[Attempt]) -> float:
    """Return the seconds that a stop and a new start take.

    They are this job's own start-ups, else as promised, and a saving.
    """
    if not attempts:
        return 0.0
    last = attempts[-1]
    # Read without a parser: one bad row stops no tick.
    startups = [attempt.measured.get("startup_s") for attempt in attempts]
    own = [startup_s for startup_s in startups if is_number(startup_s)]
    startup_s = median(own) if own else last.promised.startup_s
    return startup_s + _saving_s(last)


def unsaved_s(attempts: Sequence[Attempt], saved: datetime | None, now: datetime) -> float:
    """Running time that would be lost: none, if a stop leaves the time to save first."""
    live = next((attempt for attempt in attempts if attempt.ended_at is None), None)
    grace_s = settings.STOP_GRACE_S / 2
    if live is None or live.begun_at is None or grace_s >= SAVINGS_IN_A_GRACE * _saving_s(live):
        return 0.0
    since = max(saved, live.begun_at) if saved else live.begun_at
    return max(0.0, (now - since).total_seconds())


def _saving_s(attempt: Attempt) -> float:
    remaining = attempt.remaining
    return remaining.work.saving_s if remaining else 0.0


def saved_at(jobs: QuerySet[Job]) -> dict[str, datetime]:
    """When each job that runs saved its last checkpoint."""
    found = Checkpoint.objects.filter(job__in=jobs.filter(state__in=LIVE).order_by().values("pk"))
    return dict(found.values_list("job").annotate(at=Max("at")))


def preempted(attempts: Sequence[Attempt]) -> list[datetime]:
    """Return when the job was stopped for other jobs.

    Moves of its own and losses of nodes do not count.
    """
    return [
        attempt.ended_at
        for attempt in attempts
        if attempt.ended_at and attempt.stopped_for_id not in (None, attempt.job_id)
    ]
