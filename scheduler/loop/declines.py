"""The nodes that a job avoids because they declined it (docs/adr/0011).

The module also words this for the job's owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from portal.events.models import Event
from portal.events.types import EventType
from scheduler.models import Claim, Job
from scheduler.states import Outcome

LONGEST = 3  # times as long as a node is blocked
NAMED = 3  # nodes
REASON = 100  # characters of a node's reason


@dataclass(frozen=True, slots=True)
class Avoided:
    """The nodes, and which they are, why and until when, in words for the job's owner."""

    nodes: frozenset[str] = frozenset()
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Decline:
    node: str
    name: str
    at: datetime
    reason: str


def away_for(declines: int) -> timedelta:
    """How long a job keeps away from a node that declined it so many times in a row.

    At first a little, as a GPU may be left in a moment; then so long that a job alone never takes a node out.
    """
    times = min(declines - 1, LONGEST)
    return timedelta(seconds=settings.NODE_BLOCKED_S * times if times else settings.DECLINE_BACKOFF_S)


def avoided_by(jobs: QuerySet[Job], now: datetime) -> dict[str, Avoided]:
    """Return by job the nodes that it avoids at `now`.

    Jobs that avoid none are left out.
    """
    found: dict[str, list[tuple[datetime, _Decline]]] = defaultdict(list)
    for job, in_a_row in _declines(jobs):
        last = in_a_row[-1]
        until = last.at + away_for(len(in_a_row))
        if until > now:
            found[job].append((until, last))
    return {
        job: Avoided(frozenset(last.node for _, last in away), _sentences(sorted(away, key=_by_time)))
        for job, away in found.items()
    }


def _declines(jobs: QuerySet[Job]) -> Iterable[tuple[str, Sequence[_Decline]]]:
    """Return each job with the declines of one node that still count against it.

    They are those since the job started there or an administrator resumed the node.
    """
    started_since = Claim.objects.filter(
        node=OuterRef("node"),
        attempt__job=OuterRef("attempt__job"),
        attempt__fence__gt=OuterRef("attempt__fence"),
        started=True,
    )
    resumed_since = Event.objects.filter(
        subject=OuterRef("node"), type=EventType.NODE_RESUMED, at__gt=OuterRef("attempt__ended_at")
    )
    declined = Claim.objects.filter(
        ~Exists(started_since),
        ~Exists(resumed_since),
        outcome=Outcome.DECLINED,
        attempt__ended_at__isnull=False,
        attempt__job__in=jobs.order_by().values("pk"),
    )
    columns = ("attempt__job", "node", "node__name", "attempt__ended_at", "attempt__reason")
    found: dict[tuple[str, str], list[_Decline]] = defaultdict(list)
    for job, node, *rest in declined.order_by("attempt__fence").values_list(*columns):
        found[job, node].append(_Decline(node, *rest))
    return [(job, in_a_row) for (job, _), in_a_row in found.items()]


def _by_time(away: tuple[datetime, _Decline]) -> tuple[datetime, str]:
    return away[0], away[1].name


def _sentences(away: Sequence[tuple[datetime, _Decline]]) -> str:
    """Return the text about declines, naming first the nodes that are asked first.

    It gives the time of the clock, so that the text stays the same from tick to tick.
    """
    sentences = [
        f"{last.name} declined it and is asked again at {until.astimezone(UTC).isoformat(timespec='seconds')}"
        f" ({last.reason.removeprefix(f'{last.name}: ')[:REASON].rstrip('. ')})."
        for until, last in away[:NAMED]
    ]
    more = len(away) - NAMED
    if more > 0:
        sentences.append(f"So did {more} more {'node' if more == 1 else 'nodes'}.")
    return " ".join(sentences)
