"""CPU time for playing a queue ahead, shared out over the first plays."""

from __future__ import annotations

import time
from collections.abc import Callable

from scheduler.core.ahead.forecast import LEAST_PLAYS


class CpuBudget:
    """Seconds of this thread's CPU from now on.

    A play asks between two decisions.
    """

    def __init__(self, seconds: float) -> None:
        self.ends_at = time.thread_time() + seconds

    def share(self, plays: int) -> Callable[[], bool]:
        """A function that says whether the first of so many plays to come may go on."""
        now = time.thread_time()
        until = now + (self.ends_at - now) / plays
        return lambda: time.thread_time() < until

    def of_play(self, number: int) -> Callable[[], bool]:
        """A function that says whether the play with this number may go on.

        The first ones get equal shares of what is left.
        """
        return self.share(max(1, LEAST_PLAYS - number))
