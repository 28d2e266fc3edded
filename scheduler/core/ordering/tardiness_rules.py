"""Sequences on one lane that keep total tardiness low.

Total tardiness is the sum of max(0, completion - due). Inputs are arrays of shape (jobs,) in
one unit of time: p durations, d due times, both from now; `start` is the time already
committed. Outputs are orders, as indices. Source: Cetinkaya et al., 2025 (MDD, MDDC).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TRAINED_MEAN = 50.0  # MDDC adds a ratio to a time; its constants were found at this mean duration


def edd(p: Floats, d: Floats) -> list[int]:
    """Earliest due date first, then the shorter."""
    return [int(index) for index in np.lexsort((p, d))]


def mdd(p: Floats, d: Floats, start: float = 0.0) -> list[int]:
    """Take the job with the least modified due date, max(t + p, d), again and again.

    Ties go to the lower index.
    """
    left = np.arange(len(p))
    order: list[int] = []
    t = start
    while len(left):
        position = int(np.argmin(np.maximum(t + p[left], d[left])))
        order.append(int(left[position]))
        t += p[order[-1]]
        left = np.delete(left, position)
    return order


def mddc(p: Floats, d: Floats, start: float = 0.0) -> list[int]:
    """Order jobs by MDD with a correction for long jobs.

    Times are scaled to the mean duration at which the correction was found.
    """
    scale = TRAINED_MEAN / float(p.mean()) if len(p) and p.mean() > 0 else 1.0
    return _mddc(p * scale, d * scale, start * scale)


def _mddc(p: Floats, d: Floats, t: float) -> list[int]:
    left = np.argsort(p, kind="stable")
    total = float(p.sum())
    order: list[int] = []
    while len(left):
        own = p[left]
        longest, mean = own[-1], total / len(left)
        ratio = np.minimum(own / (t + longest), 1.0) ** 2 if t + longest > 0 else np.zeros(len(left))
        due = np.maximum(1.1 * own + t, d[left]) * (1 + ratio / (1 + ratio))
        position = int(np.argmin(due + (own / (t + mean) if t + mean > 0 else 0.0)))
        order.append(int(left[position]))
        t += p[order[-1]]
        total -= p[order[-1]]
        left = np.delete(left, position)
    return order


def tardiness(order: Sequence[int], p: Floats, d: Floats, start: float = 0.0) -> float:
    """Total tardiness of an order."""
    ends = start + np.cumsum(p[list(order)])
    return float(np.maximum(ends - d[list(order)], 0.0).sum())
