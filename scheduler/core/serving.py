"""Proof by silence: leases count only time in which the portal served.

Silence proves something only while the portal demonstrably served.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """A way into the portal: its last message, and since when it has no gap.

    `heard_at` is when something last came through; `since` is when the time without a gap
    began.
    """

    heard_at: datetime
    since: datetime

    def heard(self, at: datetime, gap: timedelta) -> Reachability:
        """Return the reachability after one more look.

        `at`: when something last came through. After a gap the way in counts as opened anew.
        """
        if at - self.heard_at > gap:
            return Reachability(heard_at=at, since=at)
        return replace(self, heard_at=max(self.heard_at, at))

    def stood_open(self, time: timedelta, now: datetime, gap: timedelta) -> bool:
        """Has it stood open for so long, up to now?"""
        return now - self.heard_at <= gap and now - self.since >= time


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long nodes may be silent.

    `lease`: until they are lost; `stops`: until they stop by themselves.
    """

    lease: timedelta
    stops: timedelta

    @property
    def gap(self) -> timedelta:
        """The longest time without use before a way in counts as shut.

        Agents wait at most as long between tries.
        """
        return self.lease / 3


def lost_before(
    terms: LeaseTerms, *, web: Reachability, nodes: Reachability, several: bool, now: datetime
) -> datetime | None:
    """Return the time such that nodes last heard of before it are lost.

    None while silence proves nothing.
    web: the way by which the web server reaches itself.
    nodes: the way by which nodes reach it. With several nodes only that one tells, as the parts
    between them and the web server may be away, too. While all are silent, they are given the
    time after which they stop by themselves: no other node could take their jobs over.
    """
    if not several:
        return _silent_since(web, terms.lease, terms.gap, now)
    if now - nodes.heard_at <= terms.gap:
        return _silent_since(nodes, terms.lease, terms.gap, now)
    return _silent_since(web, terms.stops, terms.gap, now)


def _silent_since(way_in: Reachability, time: timedelta, gap: timedelta, now: datetime) -> datetime | None:
    return now - time if way_in.stood_open(time, now, gap) else None
