"""The time until people's work went on.

Jobs are timed after trouble, submissions until they were answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from scheduler.models import Attempt
from tests.chaos.judging.recovery import ANSWERS, TICKS, Row, Struck, base
from tests.chaos.judging.silence import Silences
from tests.chaos.notes import Note

TROUBLE = ("lost", "killed", "timeout", "declined", "checkpoint")
Span = tuple[float, float]


def work(rows: str, notes: Sequence[Note], struck: Sequence[Struck], silences: Silences) -> list[Row]:
    """Return rows for the table of recoveries.

    Work that fell into the portal's own trouble counts as overlapped.
    """
    spans = dict[str, list[Span]]()
    for outcome, span in _again(rows, silences):
        spans.setdefault(f"job runs again after {outcome}", []).append(span)
    if answered := list(_answered(notes)):
        spans["submission answered"] = answered
    portal = [one for one in struck if base(one.target) in ANSWERS | TICKS]
    return [_row(kind, found, portal) for kind, found in spans.items()]


def _row(kind: str, spans: Sequence[Span], portal: Sequence[Struck]) -> Row:
    clear = [
        (begin, end)
        for begin, end in spans
        if not any(one.began < end and one.ended > begin for one in portal)
    ]
    seconds = tuple(max(0.0, end - begin) for begin, end in clear)
    return Row(kind, len(spans), len(spans) - len(clear), seconds)


def _again(rows: str, silences: Silences) -> Iterator[tuple[str, Span]]:
    """Return the spans from the end of an attempt until the next one runs.

    Where the attempt's lease had to run out, its span starts at the end of the lease.
    """
    by_job = defaultdict[str, list[Attempt]](list)
    for attempt in Attempt.objects.using(rows).order_by("fence").prefetch_related("claims__node"):
        by_job[attempt.job_id].append(attempt)
    for attempts in by_job.values():
        for ended, following in pairwise(attempts):
            if ended.outcome in TROUBLE and ended.ended_at and following.running_at:
                due = ended.ended_at.timestamp()
                if ended.reason.startswith("Its node"):
                    nodes = {claim.node.name for claim in ended.claims.all()}
                    due -= min(silences.beyond_s(node, due) for node in nodes)
                yield ended.outcome, (due, following.running_at.timestamp())


def _answered(notes: Sequence[Note]) -> Iterator[Span]:
    """From the first try under a key to the first answer."""
    first = dict[str, float]()
    answered = set[str]()
    for note in notes:
        if note.op == "submit" and note.key not in answered:
            first.setdefault(note.key, note.at - note.took_s)
            if note.known == "ok":
                answered.add(note.key)
                yield first[note.key], note.at
