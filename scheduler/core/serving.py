"""Proof by silence: leases count only time in which the portal served.

Silence proves something only while the portal demonstrably served.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

MOST_SPANS = 50  # of a way in that opens and shuts all the time; what lay before proves nothing


class Span(NamedTuple):
    """A time without a gap."""

    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """A way into the portal: its last message, and since when it has no gap.

    `heard_at` is when something last came through; `since` is when the time without a gap
    began. `earlier` are the times before that in which it stood open, the newest last.
    """

    heard_at: datetime
    since: datetime
    earlier: tuple[Span, ...] = ()

    def heard(self, at: datetime, gap: timedelta) -> Reachability:
        """Return the reachability after one more look.

        `at`: when something last came through. After a gap the way in counts as opened anew.
        """
        if at - self.heard_at > gap:
            earlier = (*self.earlier, Span(self.since, self.heard_at))[-MOST_SPANS:]
            return Reachability(heard_at=at, since=at, earlier=earlier)
        return replace(self, heard_at=max(self.heard_at, at))

    def open_since(self, now: datetime, gap: timedelta) -> datetime:
        """Since when it stands open; `now` where it is shut."""
        return self.since if now - self.heard_at <= gap else now

    def stood_open(self, time: timedelta, now: datetime, gap: timedelta) -> bool:
        """Has it stood open for so long, up to now?"""
        return now - self.heard_at <= gap and now - self.since >= time

    def open_for(self, time: timedelta, now: datetime) -> datetime | None:
        """Return since when it has stood open for so long in all.

        Gaps are left out. None if it has not stood open for so long.
        """
        for begin, end in (Span(self.since, now), *reversed(self.earlier)):
            if end - begin >= time:
                return end - time
            time -= end - begin
        return None

    def proves_at(self, time: timedelta, heard_at: datetime, now: datetime, gap: timedelta) -> datetime:
        """Return when it will have stood open for so long since `heard_at`.

        It is taken to stay open from now on.

        Whoever comes back after an absence has a gap's time.
        """
        opened = self if now - self.heard_at <= gap else self.heard(now, gap)
        spans = (*opened.earlier, Span(opened.since, now))
        stood = sum((max(timedelta(), end - max(begin, heard_at)) for begin, end in spans), timedelta())
        return max(now + time - stood, opened.since + gap)


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

    @property
    def proof(self) -> timedelta:
        """How long others have to come through before the silence of one is its own.

        Two of the longest waits between tries: the first may have begun just before the way in opened.
        """
        return 2 * self.gap


def lost_before(
    terms: LeaseTerms, *, web: Reachability, nodes: Reachability, several: bool, now: datetime
) -> datetime | None:
    """Return the time such that nodes last heard of before it are lost.

    None while silence proves nothing. A lease runs while the web server serves, and goes on after an absence.
    web: the way by which the web server reaches itself.
    nodes: the way by which nodes reach it. With several nodes others must have come through for a
    part of the lease, as the parts between them and the web server may be away, too. While all are silent,
    they are given the time after which they stop by themselves: no other node could take their jobs over.
    """
    if not several:
        return _silent_since(web, terms.lease, terms.gap, now)
    if now - nodes.heard_at > terms.gap:
        return _silent_since(web, terms.stops, terms.gap, now)
    served = _silent_since(web, terms.lease, terms.gap, now)
    proven = _silent_since(nodes, terms.proof, terms.gap, now)
    return min(served, proven) if served and proven else None


def _silent_since(way_in: Reachability, time: timedelta, gap: timedelta, now: datetime) -> datetime | None:
    """An absence may have just ended: whoever comes back has a gap's time."""
    return way_in.open_for(time, now) if way_in.stood_open(gap, now, gap) else None


def lost_at(
    terms: LeaseTerms,
    *,
    web: Reachability,
    nodes: Reachability,
    several: bool,
    heard_at: datetime,
    now: datetime,
) -> datetime:
    """Return when a node that was last heard of at `heard_at` will be lost.

    That is if nothing more is heard of it, and the ways in stand open from now on; the other arguments are
    those of `lost_before`.
    """
    lease = web.proves_at(terms.lease, heard_at, now, terms.gap)
    if not several:
        return lease
    if now - nodes.heard_at > terms.gap:
        return web.proves_at(terms.stops, heard_at, now, terms.gap)
    return max(lease, nodes.proves_at(terms.proof, heard_at, now, terms.gap))
