"""Past, present and expected work of every GPU, for all people who signed in.

Jobs of others stay nameless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import F, Q, QuerySet

from portal.accounts.models import User
from scheduler.models import Allocation, Job, MaintenanceWindow, Node, StartForecast
from scheduler.selectors.figures.start_forecasts import Expected, expected
from scheduler.selectors.figures.times import Ending, ending
from scheduler.selectors.jobs import sees
from scheduler.selectors.silence import heard_of_claims, is_silent, trusted_since
from scheduler.states import JobState

MAX_BARS = 2000
JOB_COLUMNS = ("id", "name", "owner", "team")
HELD_COLUMNS = (
    "allocated_at", "released_at", "gpu__index", "gpu__node__last_seen_at",
    *(f"claim__attempt__{name}" for name in ("created_at", "queued_s", "ended_at", "progress")),
    *(f"claim__attempt__job__{name}" for name in (*JOB_COLUMNS, "state")),
)  # fmt: skip
WAITING_COLUMNS = (
    "made_at", "start_at", "start_low", "start_high", "end_at", "end_low", "end_high", "gpus",
    *(f"job__{name}" for name in JOB_COLUMNS),
)  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One GPU held by one job for a time.

    end: None while it is still held.
    heard_at: when its node was last heard of, if that is silent: what the GPU does since is not known.
    ending: when that job is expected to end; None where nothing is known, and once it has.
    job: None where it is another user's.
    """

    node: str
    gpu_index: int
    start: datetime
    end: datetime | None
    job: Job | None
    ending: Ending | None = None
    heard_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedBar:
    """One GPU on which a waiting job is expected to start.

    job: None where it is another user's.
    """

    gpu_index: int
    expected: Expected
    job: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTime:
    """A maintenance window of a node; reserved: jobs of one team may run."""

    begins_at: datetime
    ends_at: datetime
    reserved: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One node, what its GPUs did, and what is ahead of them.

    bars: newest first; expected: by the start. At most MAX_BARS of each on all lanes together.
    """

    name: str
    gpus: int
    joined_at: datetime
    bars: tuple[Bar, ...]
    expected: tuple[ExpectedBar, ...] = ()
    closed: tuple[ClosedTime, ...] = ()


def nodes_with_gpus() -> QuerySet[Node]:
    """The nodes that have lanes, by name."""
    return Node.present.filter(gpus__isnull=False).distinct().order_by("name").prefetch_related("gpus")


def lanes(
    user: User, nodes: Iterable[Node], *, since: datetime, now: datetime, until: datetime
) -> list[Lane]:
    """Lanes of these nodes of `nodes_with_gpus`; four queries.

    They have allocations from `since` on, and starts and windows that are expected before `until`; on a
    silent node none are expected.
    """
    shown = list(nodes)
    bars = _grouped(_held(user, shown, since, now))
    heard = {node.pk for node in shown if not is_silent(node, now)}
    waiting = _grouped((node, bar) for node, bar in _waiting(user, now, until) if node in heard)
    closed = _grouped(_closed(shown, now, until))
    return [
        Lane(
            name=node.name,
            gpus=len(node.gpus.all()),
            joined_at=node.enrolled_at,
            bars=tuple(bars.get(node.pk, ())),
            expected=tuple(waiting.get(node.pk, ())),
            closed=tuple(closed.get(node.pk, ())),
        )
        for node in shown
    ]


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Group values by node id, in their order."""
    found: dict[str, list[T]] = {}
    for node, one in pairs:
        found.setdefault(node, []).append(one)
    return found


def _held(user: User, nodes: Sequence[Node], since: datetime, now: datetime) -> Iterator[tuple[str, Bar]]:
    rows = (
        Allocation.objects.filter(
            Q(released_at__isnull=True) | Q(released_at__gte=since), gpu__node__in=nodes
        )
        .select_related("gpu__node", "claim__attempt__job")
        .only(*HELD_COLUMNS)
        .annotate(nodes_heard_at=heard_of_claims("claim__attempt__job"))
        .order_by("-allocated_at", "pk")[:MAX_BARS]
    )
    for row in rows:
        attempt, job, node = row.claim.attempt, row.claim.attempt.job, row.gpu.node
        live = row.released_at is None
        quiet = row.nodes_heard_at is not None and row.nodes_heard_at < trusted_since(now)
        bar = Bar(
            node=row.gpu.node_id,
            gpu_index=row.gpu.index,
            start=row.allocated_at,
            end=row.released_at,
            job=job if sees(user, job) else None,
            ending=ending(job, [attempt], now, silent=quiet) if live else None,
            heard_at=node.last_seen_at if live and is_silent(node, now) else None,
        )
        yield row.gpu.node_id, bar


def _waiting(user: User, now: datetime, until: datetime) -> Iterator[tuple[str, ExpectedBar]]:
    """The newest forecasts of jobs that still wait, on any nodes."""
    rows = (
        StartForecast.objects.filter(first=False, start_at__lt=until, job__state=JobState.QUEUED)
        .filter(made_at__gte=F("job__state_since"))
        .select_related("job")
        .only(*WAITING_COLUMNS)
        .order_by("start_at", "pk")[:MAX_BARS]
    )
    for row in rows:
        start, job = expected(row, now), row.job if sees(user, row.job) else None
        for node, indices in row.gpus.items():
            for index in indices:
                yield node, ExpectedBar(gpu_index=index, expected=start, job=job)


def _closed(nodes: Sequence[Node], now: datetime, until: datetime) -> Iterator[tuple[str, ClosedTime]]:
    rows = MaintenanceWindow.objects.filter(nodes__in=nodes, ends_at__gt=now, begins_at__lt=until)
    columns = rows.values_list("nodes", "begins_at", "ends_at", "team", "note")
    for node, begins_at, ends_at, team, note in columns:
        yield node, ClosedTime(begins_at=begins_at, ends_at=ends_at, reserved=team is not None, note=note)
