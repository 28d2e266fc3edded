"""The amount of one kind of work that a tick does.

Leases are soon looked at again, and the rest is left to the next tick.
"""

from __future__ import annotations

import time

from django.conf import settings


class TickBudget:
    """A number of changes, and some seconds.

    On a slow database even few changes take long.
    """

    def __init__(self) -> None:
        self._left = int(settings.CHANGES_PER_TICK)
        self._until = time.monotonic() + float(settings.CHANGES_FOR_S)

    def allows(self) -> bool:
        """Whether there is room for one more."""
        return self.room > 0

    @property
    def room(self) -> int:
        """How many more changes there is room for."""
        return self._left if time.monotonic() < self._until else 0

    def spend(self, changes: int = 1) -> None:
        """Count changes that were made.

        A failure is none: rows that cannot be handled must not hold up others.
        """
        self._left -= changes
