"""A circuit breaker for a database that has stopped answering.

One caller at a time looks if it is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Breaker:
    """A circuit breaker shared by the threads of a process.

    Without it each of their requests would wait for itself.

    pause_s: time between two callers that are let through while nothing answers; each may wait that
    long.
    """

    def __init__(self, pause_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.pause_s, self._clock = pause_s, clock
        self._lock = threading.Lock()
        self._next_try: float | None = None

    @property
    def open(self) -> bool:
        """Has the database not answered when it was last asked?"""
        return self._next_try is not None

    def admits(self) -> bool:
        """Return whether this caller may ask.

        While nothing answers, each caller that may makes the others wait for their turn.
        """
        if self._next_try is None:
            return True
        with self._lock:
            now = self._clock()
            if self._next_try is not None and now < self._next_try:
                return False
            if self._next_try is not None:
                self._next_try = now + self.pause_s
            return True

    def silent(self) -> None:
        """A caller gave up waiting."""
        with self._lock:
            self._next_try = self._clock() + self.pause_s

    def answered(self) -> None:
        """A caller got an answer, an error of the server included."""
        if self._next_try is not None:
            with self._lock:
                self._next_try = None
