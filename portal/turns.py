"""Turns for costly work, a few at a time in all or for each person.

No thread waits for its turn for long.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from portal.accounts.errors import TooBusy

client_address: ContextVar[str] = ContextVar("client address", default="")  # empty: no client's work


class Turns:
    """Turns for `at_once` tasks of one process at a time.

    `waiting` more may wait for each of them, for `patience_s` at most. One address leaves half of
    the waiting places to others, and the next turn goes to the address that holds the fewest
    places: a crowd at one of them keeps nobody else out.
    """

    def __init__(self, *, at_once: int, waiting: int, patience_s: float, busy: str) -> None:
        """busy: what to tell who gets no turn."""
        self._at_once, self._room = at_once, at_once * (1 + waiting)
        self._of_one_address = at_once + at_once * waiting // 2
        self._patience_s, self._busy = patience_s, busy
        self._changed = threading.Condition()
        self._running = 0
        self._waiting: dict[object, str] = {}  # by arrival
        self._held: Counter[str] = Counter()  # places of each address, running and waiting

    @contextmanager
    def take(self, address: str = "") -> Iterator[None]:
        """Raises TooBusy."""
        with self._changed:
            self._come_in(address)
            try:
                self._wait_for_a_turn(address)
            except TooBusy:
                self._leave(address)
                raise
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._leave(address)

    def places(self, address: str) -> int:
        """How many the address holds, running and waiting."""
        return self._held[address]

    def _come_in(self, address: str) -> None:
        crowded = bool(address) and self._held[address] >= self._of_one_address
        if crowded or self._held.total() >= self._room:
            raise TooBusy(self._busy)
        self._held[address] += 1

    def _wait_for_a_turn(self, address: str) -> None:
        place = object()
        self._waiting[place] = address
        try:
            if not self._changed.wait_for(lambda: self._next() is place, self._patience_s):
                raise TooBusy(self._busy)
            self._running += 1
        finally:
            del self._waiting[place]
            self._changed.notify_all()

    def _next(self) -> object | None:
        """Return the place that gets the free turn, if any.

        It is the first of the address that holds the fewest.
        """
        if self._running >= self._at_once:
            return None
        return min(self._waiting, key=lambda place: self._held[self._waiting[place]], default=None)

    def _leave(self, address: str) -> None:
        self._held[address] -= 1
        if not self._held[address]:
            del self._held[address]
        self._changed.notify_all()


class Shares:
    """A number of turns at once for each name in this process; nobody waits."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._held: Counter[int] = Counter()

    @contextmanager
    def take(self, name: int) -> Iterator[bool]:
        """Whether one was left for the name; it comes back at the end."""
        with self._lock:
            taken = self._held[name] < self._most
            self._held[name] += taken
        try:
            yield taken
        finally:
            with self._lock:
                self._held[name] -= taken
                if not self._held[name]:
                    del self._held[name]
