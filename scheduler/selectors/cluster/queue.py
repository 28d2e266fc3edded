"""The queue and who holds which GPU, for everybody who signed in; jobs of others stay nameless."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from scheduler.models import Allocation, Job, Node
from scheduler.selectors.jobs import visible_jobs
from scheduler.states import JobState

MAX_BARS = 2000
JOB_COLUMNS = ("claim__attempt__job__id", "claim__attempt__job__name")
WAITING_COLUMNS = ("id", "name", "model", "state_since", "submitted_at", "wait_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A waiting job at its place; `job` is None where the user may not see whose it is."""

    position: int
    since: datetime
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One GPU held by one job for a time; `end` None: still held. `job` None: of another user."""

    node: str
    gpu_index: int
    start: datetime
    end: datetime | None
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One node and what its GPUs did: `bars` newest first, at most MAX_BARS on all lanes together."""

    name: str
    gpus: int
    bars: tuple[Bar, ...]


def waiting_count() -> int:
    return Job.objects.filter(state=JobState.QUEUED).count()


def waiting_places(user: User, *, offset: int, limit: int) -> list[Place]:
    """Waiting jobs in the order of their submission, from a place on; two queries."""
    rows = list(
        Job.objects.filter(state=JobState.QUEUED)
        .order_by("submitted_at", "id")
        .only(*WAITING_COLUMNS)[offset : offset + limit]
    )
    seen = _visible(user, (job.pk for job in rows))
    return [
        Place(position=number, since=job.state_since, job=job if job.pk in seen else None)
        for number, job in enumerate(rows, start=offset + 1)
    ]


def nodes_with_gpus() -> QuerySet[Node]:
    """The nodes that have lanes, by name."""
    return Node.present.filter(gpus__isnull=False).distinct().order_by("name").prefetch_related("gpus")


def lanes(user: User, nodes: Iterable[Node], *, since: datetime) -> list[Lane]:
    """Allocations of each node's GPUs since then; three queries."""
    shown = list(nodes)
    held = (
        Allocation.objects.filter(
            Q(released_at__isnull=True) | Q(released_at__gte=since), gpu__node__in=shown
        )
        .select_related("gpu", "claim__attempt__job")
        .only("allocated_at", "released_at", "gpu__index", "gpu__node_id", *JOB_COLUMNS)
        .order_by("-allocated_at", "pk")[:MAX_BARS]
    )
    found = list(held)
    seen = _visible(user, {row.claim.attempt.job_id for row in found})
    bars: dict[str, list[Bar]] = {}
    for row in found:
        job = row.claim.attempt.job
        bar = Bar(
            node=row.gpu.node_id,
            gpu_index=row.gpu.index,
            start=row.allocated_at,
            end=row.released_at,
            job=job if job.pk in seen else None,
        )
        bars.setdefault(row.gpu.node_id, []).append(bar)
    return [
        Lane(name=node.name, gpus=len(node.gpus.all()), bars=tuple(bars.get(node.pk, ()))) for node in shown
    ]


def _visible(user: User, job_ids: Iterable[str]) -> set[str]:
    wanted = list(job_ids)
    return set(visible_jobs(user).filter(pk__in=wanted).values_list("pk", flat=True))
