"""How long could a node not be heard of, and how much of that was the portal's own absence? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.judging.recovery import Struck, base

AWAY = frozenset({"web", "database"})  # while one of these is struck, no node can be heard
START_S = 15.0  # a process that was started again may take so long until it is heard, or serves
JITTER_S = 2.0  # between two syncs, and until a tick looks

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Silences:
    """Judges losses of nodes by the faults of a run."""

    struck: Sequence[Struck]
    lease_s: float

    def too_short(self, node: str, lost_at: float) -> str:
        """Why a node should not have been lost then; empty if it was silent for a lease while others served.

        A node that cannot reach the portal backs off, by a third of the lease at most: what lies closer
        together is one silence.
        """
        spans = [
            (one.began, one.ended + START_S)
            for one in self.struck
            if one.silent and (one.target == node or base(one.target) in AWAY)
        ]
        began = lost_at
        for start, end in sorted(spans, reverse=True, key=lambda span: span[1]):
            if start < began <= end + self.lease_s / 3 + JITTER_S:
                began = start
        served_s = (lost_at - began) - covered(away_of(self.struck), began, lost_at)
        if served_s >= self.lease_s - JITTER_S:
            return ""
        return f"{served_s:.1f} s of {self.lease_s:g} s, {lost_at - began:.1f} s with the portal's absence"


def away_of(struck: Sequence[Struck]) -> list[Span]:
    """When the portal surely did not serve."""
    return [(one.began, one.ended) for one in struck if one.silent and base(one.target) in AWAY]


def covered(spans: Sequence[Span], begin: float, end: float) -> float:
    """Seconds of [begin, end] that lie in one of the spans."""
    total, reached = 0.0, begin
    for start, stop in sorted(spans):
        start, stop = max(start, reached), min(stop, end)
        if stop > start:
            total, reached = total + stop - start, stop
    return total
