"""The events of a simulation, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from math import inf
from operator import attrgetter
from typing import Any

from scheduler.core.cycle.rounds import next_round
from scheduler.simulator.inputs.market import SimulatedMarket
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.settings import SimulationSettings


class Event(IntEnum):
    """In the order in which they happen at one moment."""

    CHANGE = 0  # a job finishes or enters a phase of another pace
    FAILURE = 1  # an option shows that it does not run
    PROFILED = 2  # a profiling run is over
    CAPACITY = 3
    MARKET = 4  # a market offers something else
    WINDOW = 5  # nodes are closed, or opened again
    RULES = 6  # other limits hold, or another policy decides
    ARRIVAL = 7
    ACT = 8  # a person holds, moves or pauses a job
    BEGIN = 9  # a job may start from now on
    ROUND = 10


# As often as jobs come and end, and Python 3.11 takes as long to find a member of an Enum as for a call.
ARRIVAL, CHANGE = Event.ARRIVAL, Event.CHANGE

# (time, kind, number, subject, plan); the number keeps the order of events of one kind and moment.
_Entry = tuple[float, int, int, Any, int]
_NEVER: _Entry = (inf, Event.ROUND, 0, None, 0)


class EventQueue:
    """The events to come; the next one happens `at` a time, inf if there is none.

    Arrivals are known from the beginning, so they are sorted once. All other events are in a heap.
    """

    __slots__ = ("_arrival", "_arrivals", "_heap", "_number", "at")

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        capacity: Iterable[CapacityChange],
        settings: SimulationSettings,
        market: SimulatedMarket | None = None,
    ) -> None:
        in_order = sorted(jobs, key=attrgetter("submit_s"))
        self._arrivals = ((job.submit_s, ARRIVAL, 0, job, 0) for job in in_order)
        self._arrival: _Entry = next(self._arrivals, _NEVER)
        self._heap = [_NEVER]
        self._number = 0
        self.at = self._arrival[0]
        for change in capacity:
            self.push(change.t_s, Event.CAPACITY, change)
        for window in settings.windows:
            self.push(window.closes_at, Event.WINDOW, window)
            self.push(window.ends_at, Event.WINDOW, window)
        for rules in settings.changes:
            self.push(rules.at, Event.RULES, rules)
        for act in settings.acts:
            self.push(act.at, Event.ACT, act)
        for quote in market.trace.quotes if market else ():
            self.push(quote.at, Event.MARKET, quote)

    def push(self, at: float, kind: Event, subject: Any, plan: int = 0) -> None:
        """plan: a job's plans at that time; its events of earlier plans are stale."""
        self._number += 1
        heappush(self._heap, (at, kind, self._number, subject, plan))
        if at < self.at:
            self.at = at

    def pop(self) -> _Entry:
        """Take out the next event; there must be one."""
        heap, event = self._heap, self._arrival
        if heap[0] < event:
            event = heappop(heap)
        else:
            self._arrival = next(self._arrivals, _NEVER)
        at, arrives_at = heap[0][0], self._arrival[0]
        self.at = at if at < arrives_at else arrives_at
        return event


class Rounds:
    """When a policy that decides in rounds decides next.

    round_s: 0 or None is at every event, and then at least every `tick_s`, if that is not 0.
    """

    def __init__(self, round_s: float | None, events: EventQueue, tick_s: float = 0.0) -> None:
        self.events, self.tick_s = events, tick_s
        self._planned = False
        self.restart(round_s)

    def restart(self, round_s: float | None) -> None:
        """Another policy decides from now on, and begins with a round."""
        self.round_s = round_s
        self.every_s = round_s or self.tick_s  # decisions that are made although nothing happened; 0: none
        self._decided_at: float | None = None  # None also where nobody was there to decide about

    def due(self, now: float, *, active: bool) -> bool:
        """Decide now, or plan the round in which it will be decided."""
        if not self.round_s:
            return True
        at = next_round(self._decided_at, self.round_s, now)
        if at > now and active:
            self._plan(at)
        return at <= now

    def begins(self) -> None:
        self._planned = False

    def decided(self, now: float, *, active: bool, goes_on: bool) -> None:
        """goes_on: a next round is needed even if nothing happens."""
        self._decided_at = now if active else None
        if goes_on and self.every_s:
            self._plan(now + self.every_s)

    def _plan(self, at: float) -> None:
        if not self._planned:
            self._planned = True
            self.events.push(at, Event.ROUND, None)
