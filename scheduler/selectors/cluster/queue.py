"""The queue, for all people who signed in.

Jobs of others stay nameless.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform

from portal.accounts.models import User
from scheduler.models import Epoch, Job
from scheduler.selectors.figures.start_forecasts import Expected, newest_forecast
from scheduler.selectors.figures.times import since
from scheduler.selectors.jobs import sees, with_forecasts
from scheduler.states import JobState

WAITING_COLUMNS = (
    "id", "name", "model", "state", "state_since", "shown_since", "submitted_at", "wait_text",
    "owner", "team", "front_at", "topology", "topology_level",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A waiting job at its place.

    `job` is None where the user may not see whose it is.
    """

    position: int
    since: datetime
    starts: Expected | None
    job: Job | None


def waiting_count() -> int:
    return Job.objects.filter(state=JobState.QUEUED).count()


def waiting_places(user: User, *, offset: int, limit: int, now: datetime) -> list[Place]:
    """Waiting jobs in the order of the policy, from a place on; four queries.

    Behind those that the last tick put into order stand the others by submission.
    """
    waiting = with_forecasts(Job.objects.filter(state=JobState.QUEUED)).only(*WAITING_COLUMNS)
    ranked = _ranked(waiting)
    behind = max(0, offset - len(ranked)), max(0, offset + limit - len(ranked))
    others = waiting.exclude(pk__in=[job.pk for job in ranked]).order_by("submitted_at", "id")[slice(*behind)]
    rows = [*ranked[offset : offset + limit], *others]
    return [
        Place(
            position=number,
            since=since(job),
            starts=newest_forecast(job, now),
            job=job if sees(user, job) else None,
        )
        for number, job in enumerate(rows, start=offset + 1)
    ]


def _ranked(waiting: QuerySet[Job]) -> list[Job]:
    """The waiting jobs that the last tick put into its policy's order."""
    order: list[str] = Epoch.objects.values_list(KeyTransform(Epoch.ORDER, "memory"), flat=True).first() or []
    still = waiting.in_bulk(order)
    return [still[job] for job in order if job in still]
