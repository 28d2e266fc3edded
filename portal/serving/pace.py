"""How slow a peer may be."""

from __future__ import annotations

GRACE_S = 10.0  # for a whole request; and one second more for each
BYTES_A_SECOND = 8192  # that came meanwhile: slower bytes cross this line
SILENCE_S = 60.0  # after fast beginnings as well


class TransferPace:
    """The pace of one transfer, judged as a whole.

    A byte now and then buys no time. Times are monotonic seconds.
    """

    def __init__(self, now: float) -> None:
        self._began = self._last = now
        self._moved = 0

    def moved(self, size: int, now: float) -> None:
        self._moved += size
        self._last = now

    def due(self) -> float:
        """When it is too slow, unless more moves before."""
        return min(self._last + SILENCE_S, self._began + GRACE_S + self._moved / BYTES_A_SECOND)
