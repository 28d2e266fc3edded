"""A loop by which CPU seconds of different machines can be compared."""

from __future__ import annotations

from time import process_time

ADDITIONS = 10_000_000


def loop_s() -> float:
    """CPU seconds of ten million additions, here and now; machines differ threefold."""
    began, total = process_time(), 0
    for number in range(ADDITIONS):
        total += number
    return process_time() - began
