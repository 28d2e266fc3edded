"""What happens in a simulation, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from heapq import heappush
from typing import Any

from scheduler.core.limits import Window
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob


class Event(IntEnum):
    """In the order in which they happen at one moment."""

    CHANGE = 0  # a job finishes or enters a phase of another pace
    FAILURE = 1  # an option shows that it does not run
    CAPACITY = 2
    WINDOW = 3  # nodes are closed, or opened again
    ARRIVAL = 4
    BEGIN = 5  # a job may start from now on
    ROUND = 6


class EventQueue:
    """A heap of (time, kind, number, subject, plan).

    Numbers keep the order of events of one moment.
    """

    __slots__ = ("_number", "heap")

    def __init__(
        self, jobs: Iterable[TraceJob], capacity: Iterable[CapacityChange], windows: Iterable[Window]
    ) -> None:
        self.heap: list[tuple[float, int, int, Any, int]] = []
        self._number = 0
        for job in jobs:
            self.push(job.submit_s, Event.ARRIVAL, job)
        for change in capacity:
            self.push(change.t_s, Event.CAPACITY, change)
        for window in windows:
            self.push(window.closes_at, Event.WINDOW, window)
            self.push(window.ends_at, Event.WINDOW, window)

    def push(self, at: float, kind: Event, subject: Any, plan: int = 0) -> None:
        """plan: a job's plans at that time; its events of earlier plans are stale."""
        self._number += 1
        heappush(self.heap, (at, kind, self._number, subject, plan))
