"""When silence proves something: a lease counts only time in which the portal demonstrably served."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """A way into the portal: when something last came through, and since when that goes on without a gap."""

    heard_at: datetime
    since: datetime

    def heard(self, at: datetime, gap: timedelta) -> Reachability:
        """The door after one more look; `at`: when something last came through. After a gap it opens anew."""
        if at - self.heard_at > gap:
            return Reachability(heard_at=at, since=at)
        return replace(self, heard_at=max(self.heard_at, at))

    def stood_open(self, time: timedelta, now: datetime, gap: timedelta) -> bool:
        """Has it stood open for so long, up to now?"""
        return now - self.heard_at <= gap and now - self.since >= time


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long nodes may be silent: `lease` until they are lost, `stops` until they stop by themselves."""

    lease: timedelta
    stops: timedelta

    @property
    def gap(self) -> timedelta:
        """A door through which nothing came for longer is shut; agents wait at most as long between tries."""
        return self.lease / 3


def lost_before(
    terms: LeaseTerms, *, web: Reachability, nodes: Reachability, several: bool, now: datetime
) -> datetime | None:
    """Nodes last heard of before this moment are lost; None while silence proves nothing.

    web: through which the web server reaches itself. nodes: through which nodes reach it; with several of
    them only that one tells, as what stands between them and the web server may be away, too. While all are
    silent, they are given the time after which they stop by themselves: nobody could take their jobs over.
    """
    if not several:
        return _silent_since(web, terms.lease, terms.gap, now)
    if now - nodes.heard_at <= terms.gap:
        return _silent_since(nodes, terms.lease, terms.gap, now)
    return _silent_since(web, terms.stops, terms.gap, now)


def _silent_since(door: Reachability, time: timedelta, gap: timedelta, now: datetime) -> datetime | None:
    return now - time if door.stood_open(time, now, gap) else None
