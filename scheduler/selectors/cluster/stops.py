"""Stops for other jobs and their cost; closeness asked for and reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, OuterRef, Q, Subquery

from scheduler.models import Allocation, Attempt, Checkpoint
from scheduler.selectors.figures.times import lasted_s


@dataclass(frozen=True, slots=True)
class RecentStops:
    """Stops of running jobs for others since a moment.

    lost_gpu_s: work after their last checkpoints, and the start-ups of their next attempts so far.
    """

    stops: int = 0
    lost_gpu_s: float = 0.0

    @property
    def lost_gpu_hours(self) -> float:
        return self.lost_gpu_s / 3600


@dataclass(frozen=True, slots=True)
class RecentLevels:
    """Starts since a moment that asked for a level, and those that reached it."""

    asked: int = 0
    reached: int = 0

    @property
    def ratio(self) -> float | None:
        return self.reached / self.asked if self.asked else None


def recent_stops(since: datetime) -> RecentStops:
    """One query, of as many rows as there were stops."""
    following = Attempt.objects.filter(job=OuterRef("job"), fence=OuterRef("fence") + 1)
    stopped = Attempt.objects.filter(ended_at__gte=since, stopped_for__isnull=False).exclude(
        stopped_for=F("job")
    )
    rows = stopped.annotate(
        gpus=Count("claims__allocations"),
        saved_at=Subquery(
            Checkpoint.objects.filter(attempt=OuterRef("pk"))
            .values("attempt")
            .annotate(at=Max("at"))
            .values("at")
        ),
        again_at=Subquery(following.values("created_at")),
        again_running_at=Subquery(following.values("running_at")),
    ).values_list("created_at", "ended_at", "gpus", "saved_at", "again_at", "again_running_at")
    lost_s = 0.0
    for begun, ended, gpus, saved, again, running in rows:
        startup_s = lasted_s(again, running) if again and running else 0.0
        worked_s = lasted_s(saved or begun, ended or begun)
        lost_s += gpus * (worked_s + startup_s)
    return RecentStops(len(rows), lost_s)


def recent_levels(since: datetime) -> RecentLevels:
    """One query; a start on GPUs of which nobody knows where they sit does not count."""
    begun = Allocation.objects.filter(allocated_at__gte=since).values("claim__attempt")
    attempts = Attempt.objects.filter(pk__in=begun, asked_level__isnull=False, link_level__isnull=False)
    found: dict[str, Any] = attempts.aggregate(
        asked=Count("pk"), reached=Count("pk", filter=Q(link_level__gte=F("asked_level")))
    )
    return RecentLevels(**found)
