"""Figures of the whole cluster, for /metrics and the system page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Avg, Count, F

from scheduler.models import Allocation, Epoch, Gpu, Job, Node
from scheduler.states import JobState, NodeState


@dataclass(frozen=True, slots=True)
class Counts:
    """Counted in four queries. `last_tick_at` is None before the first tick."""

    jobs: dict[str, int]
    nodes: dict[str, int]
    gpus: int
    gpus_held: int
    ticks: int
    last_tick_at: datetime | None


def counts() -> Counts:
    """How many of what, now."""
    jobs = dict(Job.objects.values_list("state").annotate(n=Count("pk")).order_by())
    epoch = Epoch.objects.filter(pk=1).first()
    return Counts(
        jobs={state.value: jobs.get(state.value, 0) for state in JobState},
        nodes=nodes_by_state(),
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


def nodes_by_state() -> dict[str, int]:
    """How many nodes are in each state. One query."""
    nodes = dict(Node.present.values_list("state").annotate(n=Count("pk")).order_by())
    return {state.value: nodes.get(state.value, 0) for state in NodeState}


def waiting_jobs() -> int:
    """How many jobs of all people wait for GPUs. One query."""
    return Job.objects.filter(state=JobState.QUEUED).count()
