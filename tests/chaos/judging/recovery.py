"""The time until things were well again after a fault.

It is computed from what was observed. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.chaos.cluster import LIAR
from tests.chaos.watch import Timeline

HEARD_WITHIN_S = 5.0
ANSWERS = frozenset({"web", "database"})
TICKS = frozenset({"control", "beat", "broker", "database"})


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that was in force from `began` to `ended`, seconds since the epoch."""

    kind: str
    target: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of recoveries.

    Overlapped: another fault struck the same thing before it was well.
    """

    kind: str
    count: int
    overlapped: int
    seconds: tuple[float, ...]

    @property
    def p50(self) -> float:
        return median(self.seconds) if self.seconds else math.nan

    @property
    def p95(self) -> float:
        return percentile(self.seconds, 0.95) if self.seconds else math.nan


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least this share of all reach."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def base(target: str) -> str:
    """Which part of the portal, or which node: control-2 is a control worker."""
    return target.partition("-")[0]


def table(struck: Sequence[Struck], seen: Timeline) -> list[Row]:
    """A row for each kind of fault: from its end until all that it touches is well."""
    rows = []
    for kind in dict.fromkeys(one.kind for one in struck):
        ours = [one for one in struck if one.kind == kind]
        took = [_took(one, struck, seen) for one in ours]
        seconds = tuple(s for s in took if s is not None)
        rows.append(Row(kind, len(ours), took.count(None), seconds))
    return rows


def _took(one: Struck, struck: Sequence[Struck], seen: Timeline) -> float | None:
    """Return the seconds until the target was well again.

    Infinite if it was never seen well again; None if another fault came between.
    """
    well = _well_at(one, seen)
    needs = _needs(one)
    between = [
        other
        for other in struck
        if other is not one and needs & _touches(other) and other.began < well and other.ended > one.ended
    ]
    return None if between else max(0.0, well - one.ended)


def _touches(one: Struck) -> frozenset[str]:
    """The things that it may spoil; a node is heard of only while the portal answers."""
    what = base(one.target)
    touched = {"answers", "heard"} if what in ANSWERS else set()
    touched |= {"ticks"} if what in TICKS else set()
    return frozenset(touched or {one.target})


def _needs(one: Struck) -> frozenset[str]:
    """The things that must be well before it is over."""
    is_node = base(one.target) not in ANSWERS | TICKS | {LIAR}
    return _touches(one) | ({"heard"} if is_node else set())


def _well_at(one: Struck, seen: Timeline) -> float:
    what = base(one.target)
    moments = []
    if what in ANSWERS:
        moments.append(next((at for at, good in seen.answers if at >= one.ended and good), math.inf))
    if what in TICKS:
        later = [rows for rows in seen.rows if rows.at >= one.ended]
        moments.append(next((rows.at for rows in later if rows.ticks > later[0].ticks), math.inf))
    if not moments and what not in ("work", LIAR):
        moments.append(_heard_at(one, seen))
    return max(moments, default=one.ended)


def _heard_at(one: Struck, seen: Timeline) -> float:
    for rows in seen.rows:
        state, heard = rows.nodes.get(one.target, ("", 0.0))
        if rows.at >= one.ended and heard >= one.ended and state != "lost":
            return rows.at
    return math.inf
