"""Stops for other jobs and their cost; closeness asked for and reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, F, Q, Sum

from scheduler.core.stopping import FOR_OTHERS
from scheduler.models import Allocation, Attempt, Preemption


@dataclass(frozen=True, slots=True)
class RecentStops:
    """Stops of running jobs for others since a moment.

    lost_gpu_s: work after their last checkpoints, kept GPUs that lay idle, and the start-ups of their next
    attempts so far.
    """

    stops: int = 0
    lost_gpu_s: float = 0.0

    @property
    def lost_gpu_hours(self) -> float:
        return self.lost_gpu_s / 3600


class CountedStops(NamedTuple):
    """Stops under one policy for one reason, and the GPU-seconds lost to them so far."""

    policy: str
    reason: str
    stops: int
    lost_gpu_s: float


@dataclass(frozen=True, slots=True)
class RecentLevels:
    """Starts since a moment that asked for a level, and those that reached it."""

    asked: int = 0
    reached: int = 0

    @property
    def ratio(self) -> float | None:
        return self.reached / self.asked if self.asked else None


def recent_stops(since: datetime) -> RecentStops:
    """Those that were asked for since then; one query."""
    stopped = Preemption.objects.filter(at__gte=since, reason__in=FOR_OTHERS)
    found: dict[str, Any] = stopped.aggregate(stops=Count("pk"), lost_gpu_s=Sum("lost_gpu_s", default=0.0))
    return RecentStops(**found)


def all_stops() -> list[CountedStops]:
    """Of all time; one query of an index."""
    counted = Preemption.objects.values("policy", "reason").order_by("policy", "reason")
    sums = counted.annotate(stops=Count("pk"), lost_gpu_s=Sum("lost_gpu_s"))
    return [CountedStops(**row) for row in sums]


def recent_levels(since: datetime) -> RecentLevels:
    """One query; a start on GPUs of which nobody knows where they sit does not count."""
    begun = Allocation.objects.filter(allocated_at__gte=since).values("claim__attempt")
    attempts = Attempt.objects.filter(pk__in=begun, asked_level__isnull=False, link_level__isnull=False)
    found: dict[str, Any] = attempts.aggregate(
        asked=Count("pk"), reached=Count("pk", filter=Q(link_level__gte=F("asked_level")))
    )
    return RecentLevels(**found)
