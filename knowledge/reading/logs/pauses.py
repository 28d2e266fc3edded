"""Pauses that recur in a training, as for an evaluation or a checkpoint."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Collection, Sequence
from statistics import median

LEAST_S = 10.0  # longer than usual, of a pause
TIMES = 2.0  # as much longer as a usual gap is long
UNEVEN = 0.25  # of their distance, between pauses that still count as regular


def pauses_s(
    moments: Sequence[tuple[int, float]], rate: float, left: int, evaluated: Collection[int] = ()
) -> float:
    """The seconds of the pauses that `left` more steps bring; 0 where none recur.

    moments: steps with their seconds, rising in both. rate: steps a second without pauses. evaluated: the
    steps at which the log tells of an evaluation. One pause may be a hiccup, but the first evaluation comes
    again after as many steps.
    """
    known = sorted(evaluated)
    at, extra = [], []
    for old, new in itertools.pairwise(moments):
        usual = (new[0] - old[0]) / rate
        if new[1] - old[1] - usual > max(LEAST_S, TIMES * usual):
            first = bisect_left(known, old[0])
            at.append(known[first] if first < len(known) and known[first] <= new[0] else new[0])
            extra.append(new[1] - old[1] - usual)
    if not at:
        return 0.0
    apart = [new - old for old, new in itertools.pairwise(at)]
    if not apart and known and at[0] == known[0]:
        apart = at
    if not apart:
        return 0.0
    period = median(apart)
    if any(abs(one - period) > UNEVEN * period for one in apart):
        return 0.0
    since = moments[-1][0] - at[-1]
    return (since + left) // period * median(extra)
