"""The worth of a plan, from windows of the recorded market."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from scheduler.core.market.outlook import WINDOWS, money_interval, outlook_of, window_starts
from scheduler.core.market.pool import DECIDERS
from scheduler.core.market.quotes import Series
from scheduler.core.market.recording import Recording, recorded
from scheduler.core.market.replay import Life
from scheduler.core.market.types import PlanOutlook
from tests.scheduler.core.market.examples import JOB

SLOTS = 200


def outlook(name: str, recording: Recording) -> PlanOutlook:
    """That of the job from windows over the whole recording."""
    starts = window_starts(len(recording), JOB.slots, WINDOWS)
    lives = [recording.live(JOB, DECIDERS[name], start) for start in starts]
    return outlook_of(name, starts, lives, JOB.slots)


def test_plans_on_a_market_that_never_changes_are_sure() -> None:
    recording = recorded(Series(0.0, 1800.0, np.full(SLOTS, 0.3), np.full(SLOTS, 4.0)))
    on_demand, greedy = (outlook(name, recording) for name in ("on-demand", "greedy"))
    # 19 and 6 for whole slots; the rest of the last one is not paid
    assert [on_demand.money, on_demand.money_low, on_demand.money_high] == pytest.approx([18.85] * 3)
    assert greedy.money == pytest.approx(0.3 * 4 * 4.6)
    assert (greedy.in_time, greedy.interruptions, greedy.windows) == (1.0, 0.0, 60)


def test_plans_on_a_market_that_changes_have_an_interval() -> None:
    rng = np.random.default_rng(18)
    available = rng.integers(0, 5, SLOTS).astype(float)
    available[50:60] = nan
    recording = recorded(Series(0.0, 1800.0, rng.uniform(0.2, 0.6, SLOTS), available))
    greedy = outlook("greedy", recording)
    assert greedy.money_low < greedy.money < greedy.money_high
    assert greedy.in_time == 1.0  # the guard
    assert greedy.interruptions > 0


def test_intervals_hold_as_often_as_they_say_on_a_market_that_changes_for_good() -> None:
    """Quantiles of the past would miss nearly every window of a drought that lasts."""
    rng = np.random.default_rng(18)
    money = [float(cost) for cost in (*rng.normal(10, 1, 60), *rng.normal(16, 1, 120))]
    starts = [4 * number for number in range(len(money))]
    reported = [
        outlook_of("greedy", starts[:n], [life_of(cost) for cost in money[:n]], 24) for n in range(20, 174)
    ]
    after = money[26:]  # the first window that begins when the last known one has ended
    inside = [one.money_low <= cost <= one.money_high for one, cost in zip(reported, after, strict=False)]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.06)


def test_an_interval_beyond_all_that_was_seen_is_never_below_nothing() -> None:
    assert money_interval([1.0, 2.0, 3.0], 0.0) == (1.0, 3.0)
    assert money_interval([1.0, 2.0, 3.0], -0.25) == (0.5, 3.5)
    assert money_interval([1.0, 2.0, 3.0], -2.0) == (0.0, 7.0)
    assert money_interval([1.0, 2.0, 3.0], 1.5) == (2.0, 2.0)


def life_of(cost: float) -> Life:
    return Life(sizes=(), spot=(), cost=cost, value=0.0, slots=1, in_time=True, interruptions=0)


def test_windows_are_spread_over_the_recording() -> None:
    assert window_starts(10, 10, 60) == [0]
    assert window_starts(12, 10, 60) == [0, 1, 2]
    assert len(window_starts(500, 10, 60)) == 60
    assert window_starts(500, 10, 60)[-1] == 490
    with pytest.raises(ValueError, match="recorded for 5 slots, and the job has 6"):
        window_starts(5, 6, 60)
