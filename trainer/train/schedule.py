"""The learning rate of each step, a function of its number alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

# What is left of the peak once a share of the steps after the warm-up is done.
SHAPES: Mapping[str, Callable[[float], float]] = {
    "linear": lambda done: 1 - done,
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
    "constant": lambda _: 1.0,
}


def share_of_peak(step: int, steps: int, schedule: str, warmup_share: float) -> float:
    """Return the learning rate of one of so many steps as a share of its peak.

    step: from 0. It rises evenly over the first `warmup_share` of the steps.
    """
    warm_up = math.ceil(warmup_share * steps)
    if step < warm_up:
        return (step + 1) / warm_up
    return SHAPES[schedule]((step - warm_up) / (steps - warm_up))
