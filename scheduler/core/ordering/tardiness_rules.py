"""Sequences on one lane that keep total tardiness low.

Total tardiness is the sum of max(0, completion - due). Inputs are arrays of shape (jobs,) in
one unit of time: p durations, d due times, both from now; `start` is the time already
committed. Outputs are orders, as indices. Source: Cetinkaya et al., 2025 (MDD, MDDC).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROWS = 16  # looked at one by one before all are
TRAINED_MEAN = 50.0  # MDDC adds a ratio to a time; its constants were found at this mean duration


def edd(p: Floats, d: Floats) -> list[int]:
    """Earliest due date first, then the shorter."""
    return [int(index) for index in np.lexsort((p, d))]


def mdd(p: Floats, d: Floats, start: float = 0.0) -> list[int]:
    """Take the job with the least modified due date, max(t + p, d), again and again.

    Ties go to the lower index.
    """
    left, order, t = _Left(p, d, needs=p), list[int](), start
    while len(order) < len(p):
        left.turn_late(t)
        found = [(t + own, job) for own, job in left.late[:1]]
        found += [(left.due[job], job) for job in islice(left.in_time(left.by_due), 1)]
        order.append(min(found)[1])
        left.place(order[-1])
        t += left.own[order[-1]]
    return order


def mddc(p: Floats, d: Floats, start: float = 0.0) -> list[int]:
    """Order jobs by MDD with a correction for long jobs.

    Times are scaled to the mean duration at which the correction was found. Ties go to the shorter job, then
    to the lower index.
    """
    scale = TRAINED_MEAN / float(p.mean()) if len(p) and p.mean() > 0 else 1.0
    by_duration = np.argsort(p, kind="stable")
    order = _mddc(p[by_duration] * scale, d[by_duration] * scale, start * scale)
    return [int(job) for job in by_duration[order]]


def _mddc(p: Floats, d: Floats, t: float) -> list[int]:
    """p: ascending."""
    left, order, total = _Left(p, d, needs=1.1 * p), list[int](), float(p.sum())
    longest = len(p) - 1
    while len(order) < len(p):
        left.turn_late(t)
        while left.placed[longest]:
            longest -= 1
        job = _least_corrected(left, t, left.own[longest], total / (len(p) - len(order)))
        order.append(job)
        left.place(job)
        t += left.own[job]
        total -= left.own[job]
    return order


def _least_corrected(left: _Left, t: float, longest: float, mean: float) -> int:
    """The job with the least corrected due date.

    That grows with the duration and with the due time. So it is the shortest of the late jobs, or one of the
    others, which are met in both orders at once until none behind can be better (the threshold algorithm of
    Fagin et al., PODS 2001). Where that takes too long, all are looked at.
    """

    def corrected(own: Any, modified: Any) -> Any:
        ratio = (own / (t + longest or 1.0)) ** 2
        return modified * (1 + ratio / (1 + ratio)) + own / (t + mean or 1.0)

    best = min(((corrected(own, 1.1 * own + t), job) for own, job in left.late[:1]), default=(inf, 0))
    rows = zip(left.in_time(left.by_due), left.in_time(left.by_duration), strict=True)
    for row, (due_first, shortest) in enumerate(rows):
        if row == _ROWS:
            keys = corrected(left.p, left.due_in_time)
            return min(best, (keys.min(), int(keys.argmin())))[1]
        for job in (due_first, shortest):
            best = min(best, (corrected(left.own[job], left.due[job]), job))
        if corrected(left.own[shortest], left.due[due_first]) >= best[0]:
            break
    return best[1]


class _Left:
    """The jobs without a turn, those that are late apart from the others.

    A job is late once less time than it needs is left until it is due, and stays so.
    """

    def __init__(self, p: Floats, d: Floats, needs: Floats) -> None:
        self.own, self.due, self.needs = p.tolist(), d.tolist(), needs.tolist()
        self.p, self.due_in_time = p, d.copy()  # inf for those that are gone
        self.placed = [False] * len(p)
        self.late: list[tuple[float, int]] = []  # a heap, the shortest first
        self._gone = [False] * len(p)  # late or placed
        # The first ones last, where they are dropped once they are gone.
        self.by_due, self.by_duration, self._turning = (
            np.argsort(key, kind="stable")[::-1].tolist() for key in (d, p, d - needs)
        )

    def turn_late(self, t: float) -> None:
        """It is this late now."""
        turning = self._turning
        while turning and t + self.needs[turning[-1]] >= self.due[turning[-1]]:
            job = turning.pop()
            if not self._gone[job]:
                self._leave(job)
                heappush(self.late, (self.own[job], job))

    def in_time(self, order: list[int]) -> Iterator[int]:
        """The jobs that are not late, in one of the orders."""
        while order and self._gone[order[-1]]:
            order.pop()
        return (job for job in reversed(order) if not self._gone[job])

    def place(self, job: int) -> None:
        """The job has its turn; a late one must be the shortest of them."""
        self.placed[job] = True
        if self._gone[job]:
            heappop(self.late)
        else:
            self._leave(job)

    def _leave(self, job: int) -> None:
        self._gone[job], self.due_in_time[job] = True, inf


def tardiness(order: Sequence[int], p: Floats, d: Floats, start: float = 0.0) -> float:
    """Total tardiness of an order."""
    ends = start + np.cumsum(p[list(order)])
    return float(np.maximum(ends - d[list(order)], 0.0).sum())
