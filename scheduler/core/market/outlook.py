"""The outlook of a way of running a job, from windows of the recorded market.

Markets change, so that quantiles of the past alone are no interval for what comes: after each window the
level is moved by whether the earlier interval held. Source: Gibbs and Candès, Adaptive Conformal
Inference Under Distribution Shift, NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.core.market.replay import Life
from scheduler.core.market.types import PlanOutlook

WINDOWS = 60
MISSED = 0.2  # share of the intervals that may miss
STEP = 0.1  # by which a miss or a hit moves the level
LEAST_KNOWN = 5  # windows that must have ended before an interval is stated


def outlook_of(name: str, starts: Sequence[int], lives: Sequence[Life], slots: int) -> PlanOutlook:
    """The outlook from lives that began in these slots, the earliest first.

    Deciders count whole slots; what is left of the last one when a job ends costs nothing.
    """
    money = [one.cost - one.spare_cost for one in lives]
    low, high = money_interval(money, _level(starts, money, slots))
    return PlanOutlook(
        decider=name,
        money=float(np.median(money)),
        money_low=low,
        money_high=high,
        in_time=float(np.mean([one.in_time for one in lives])),
        slots=float(np.median([(one.slots or np.inf) - one.spare for one in lives])),
        interruptions=float(np.mean([one.interruptions for one in lives])),
        windows=len(lives),
    )


def money_interval(money: Sequence[float], missed: float) -> tuple[float, float]:
    """The interval that this share of the money lies outside of.

    Below 0 it reaches beyond all that was seen, by that share of the range; money is never below 0.
    """
    share = min(max(missed, 0.0), 1.0)
    low, high = np.quantile(money, [share / 2, 1 - share / 2])
    wider = max(-missed, 0.0) * (max(money) - min(money))
    return max(0.0, float(low) - wider), float(high) + wider


def window_starts(recorded: int, slots: int, windows: int) -> Sequence[int]:
    """First slots of at most so many windows, the last one ending with the recording."""
    if recorded < slots:
        raise ValueError(
            f"the market is recorded for {recorded} slots, and the job has {slots};"
            " choose an earlier deadline or wait until more is known of the market"
        )
    last = recorded - slots
    return sorted({round(place) for place in np.linspace(0, last, min(windows, last + 1))})


def _level(starts: Sequence[int], money: Sequence[float], slots: int) -> float:
    """The level for the next interval, moved by how earlier ones did."""
    missed = MISSED
    misses: list[bool] = []  # of the windows so far, as far as an interval could be stated
    heard = 0
    for number, start in enumerate(starts):
        known = sum(earlier + slots <= start for earlier in starts[:number])
        judged_from = number - len(misses)
        while heard < known - judged_from:
            missed += STEP * (MISSED - misses[heard])
            heard += 1
        if known >= LEAST_KNOWN:
            low, high = money_interval(money[:known], missed)
            misses.append(not low - 1e-9 <= money[number] <= high + 1e-9)
    return missed + STEP * sum(MISSED - miss for miss in misses[heard:])
