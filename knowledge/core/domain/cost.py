"""The cost of time on GPUs, and the balance of both."""

from __future__ import annotations


def cost(seconds: float, price_per_hour: float) -> float:
    """Return what GPUs cost for a while: so much an hour together.

    GPU-seconds at the price of one GPU give the same.
    """
    return seconds * price_per_hour / 3600


def balanced(time_s: float, spent: float) -> float:
    """The geometric mean of the time and of what it costs, in GPU seconds or in money."""
    mean: float = (time_s * spent) ** 0.5
    return mean
