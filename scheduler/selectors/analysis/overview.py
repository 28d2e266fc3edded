"""Figures of the whole cluster, for /metrics and the system page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Avg, Case, Count, F, When

from scheduler.models import Allocation, Epoch, Gpu, Job, Node
from scheduler.selectors.silence import NODE_STATES, SILENT, silent_nodes
from scheduler.states import JobState


@dataclass(frozen=True, slots=True)
class Counts:
    """Counted in four queries. `last_tick_at` is None before the first tick."""

    jobs: dict[str, int]
    nodes: dict[str, int]
    gpus: int
    gpus_held: int
    ticks: int
    last_tick_at: datetime | None


def counts(now: datetime) -> Counts:
    """How many of what, at present."""
    jobs = dict(Job.objects.values_list("state").annotate(n=Count("pk")).order_by())
    epoch = Epoch.objects.filter(pk=1).first()
    return Counts(
        jobs={state.value: jobs.get(state.value, 0) for state in JobState},
        nodes=nodes_by_state(now),
        gpus=Gpu.present.count(),
        gpus_held=Allocation.objects.filter(released_at__isnull=True).count(),
        ticks=epoch.ticks if epoch else 0,
        last_tick_at=epoch.last_tick_at if epoch else None,
    )


def completions() -> tuple[int, float]:
    """Return the number of jobs that succeeded, and their total seconds to success.

    The seconds run from submission to success. It takes one query.
    """
    done: dict[str, Any] = Job.objects.filter(state=JobState.SUCCEEDED).aggregate(
        number=Count("pk"), mean=Avg(F("ended_at") - F("submitted_at"))
    )
    return done["number"], done["number"] * done["mean"].total_seconds() if done["number"] else 0.0


def nodes_by_state(now: datetime) -> dict[str, int]:
    """How many nodes people see in each state. One query."""
    nodes: dict[str, int] = defaultdict(int)
    rows = Node.present.annotate(is_silent=Case(When(silent_nodes(now), then=True), default=False))
    for state, silent, number in rows.values_list("state", "is_silent").annotate(n=Count("pk")).order_by():
        nodes[SILENT if silent else state] += number
    return {state: nodes[state] for state in NODE_STATES}


def waiting_jobs() -> int:
    """How many jobs of all people wait for GPUs. One query."""
    return Job.objects.filter(state=JobState.QUEUED).count()
