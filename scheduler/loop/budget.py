"""How much one tick does of one kind: leases are soon looked at again, and the rest is the next tick's."""

from __future__ import annotations

import time

from django.conf import settings


class Budget:
    """A number of changes, and some seconds: on a slow database even few changes take long."""

    def __init__(self) -> None:
        self._left = int(settings.CHANGES_PER_TICK)
        self._until = time.monotonic() + float(settings.CHANGES_FOR_S)

    def allows(self) -> bool:
        """Whether there is room for one more."""
        return self._left > 0 and time.monotonic() < self._until

    def spend(self, changes: int = 1) -> None:
        """So many are made. What failed is none: rows that cannot be handled must not hold up others."""
        self._left -= changes
