"""The queue and the holders of GPUs, for all people who signed in.

Jobs of others stay nameless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTransform

from portal.accounts.models import User
from scheduler.models import Allocation, Epoch, Job, Node
from scheduler.selectors.figures.start_forecasts import Expected, newest_forecast
from scheduler.selectors.figures.times import since
from scheduler.selectors.jobs import sees, with_forecasts
from scheduler.states import JobState

MAX_BARS = 2000
JOB_COLUMNS = tuple(f"claim__attempt__job__{name}" for name in ("id", "name", "owner", "team"))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One GPU held by one job for a time.

    end: None while it is still held.
    job: None where it is another user's.
    """

    node: str
    gpu_index: int
    start: datetime
    end: datetime | None
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One node and what its GPUs did.

    bars: newest first, at most MAX_BARS on all lanes together.
    """

    name: str
    gpus: int
    bars: tuple[Bar, ...]


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
    """Of the waiting jobs those that the last tick put into its policy's order."""
    order: list[str] = Epoch.objects.values_list(KeyTransform(Epoch.ORDER, "memory"), flat=True).first() or []
    still = waiting.in_bulk(order)
    return [still[job] for job in order if job in still]


def nodes_with_gpus() -> QuerySet[Node]:
    """The nodes that have lanes, by name."""
    return Node.present.filter(gpus__isnull=False).distinct().order_by("name").prefetch_related("gpus")


def lanes(user: User, nodes: Iterable[Node], *, since: datetime) -> list[Lane]:
    """Allocations of each node's GPUs since then; two queries."""
    shown = list(nodes)
    held = (
        Allocation.objects.filter(
            Q(released_at__isnull=True) | Q(released_at__gte=since), gpu__node__in=shown
        )
        .select_related("gpu", "claim__attempt__job")
        .only("allocated_at", "released_at", "gpu__index", "gpu__node_id", *JOB_COLUMNS)
        .order_by("-allocated_at", "pk")[:MAX_BARS]
    )
    bars: dict[str, list[Bar]] = {}
    for row in held:
        job = row.claim.attempt.job
        bar = Bar(
            node=row.gpu.node_id,
            gpu_index=row.gpu.index,
            start=row.allocated_at,
            end=row.released_at,
            job=job if sees(user, job) else None,
        )
        bars.setdefault(row.gpu.node_id, []).append(bar)
    return [
        Lane(name=node.name, gpus=len(node.gpus.all()), bars=tuple(bars.get(node.pk, ()))) for node in shown
    ]
