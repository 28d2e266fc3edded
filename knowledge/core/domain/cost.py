"""What time on GPUs costs."""

from __future__ import annotations


def cost(seconds: float, price_per_hour: float) -> float:
    """Return what GPUs cost for a while: so much an hour together.

    GPU-seconds at the price of one GPU give the same.
    """
    return seconds * price_per_hour / 3600
