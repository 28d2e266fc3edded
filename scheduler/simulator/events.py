"""The events of a simulation, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappush
from typing import Any

from scheduler.core.rounds import next_round
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


# As often as jobs arrive and end, and Python 3.11 takes as long to find a member of an Enum as for a call.
ARRIVAL, CHANGE = Event.ARRIVAL, Event.CHANGE


class EventQueue:
    """A heap of (time, kind, number, subject, plan).

    Numbers keep the order of events of one moment. Of all arrivals to come only the next one is in it, for a
    small heap is a quick one.
    """

    __slots__ = ("_arrivals", "_number", "heap")

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        capacity: Iterable[CapacityChange],
        settings: SimulationSettings,
        market: SimulatedMarket | None = None,
    ) -> None:
        self.heap: list[tuple[float, int, int, Any, int]] = []
        self._number = len(jobs)
        self._arrivals = iter(sorted(enumerate(jobs), key=lambda numbered: numbered[1].submit_s))
        self.await_next_arrival()
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

    def await_next_arrival(self) -> None:
        """To be called as soon as a job has arrived."""
        if (arrives := next(self._arrivals, None)) is not None:
            number, job = arrives
            heappush(self.heap, (job.submit_s, ARRIVAL, number, job, 0))

    def push(self, at: float, kind: Event, subject: Any, plan: int = 0) -> None:
        """plan: a job's plans at that time; its events of earlier plans are stale."""
        self._number += 1
        heappush(self.heap, (at, kind, self._number, subject, plan))


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
