"""What a plan would bring, from windows of the recorded market."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from scheduler.core.market.outlook import plan_outlook, window_starts
from scheduler.core.market.pool import DECIDERS
from scheduler.core.market.quotes import Series
from scheduler.core.market.recording import recorded
from tests.scheduler.core.market.examples import JOB

SLOTS = 200


def test_plans_on_a_market_that_never_changes_are_sure() -> None:
    recording = recorded(Series(0.0, 1800.0, np.full(SLOTS, 0.3), np.full(SLOTS, 4.0)))
    on_demand, greedy = (
        plan_outlook(JOB, name, DECIDERS[name], recording) for name in ("on-demand", "greedy")
    )
    assert (on_demand.money, on_demand.money_low, on_demand.money_high) == (19.0, 19.0, 19.0)
    assert greedy.money == pytest.approx(6.0)  # four GPUs for five slots
    assert (greedy.in_time, greedy.interruptions, greedy.windows) == (1.0, 0.0, 60)


def test_plans_on_a_market_that_changes_have_an_interval() -> None:
    rng = np.random.default_rng(18)
    available = rng.integers(0, 5, SLOTS).astype(float)
    available[50:60] = nan
    recording = recorded(Series(0.0, 1800.0, rng.uniform(0.2, 0.6, SLOTS), available))
    outlook = plan_outlook(JOB, "greedy", DECIDERS["greedy"], recording)
    assert outlook.money_low < outlook.money < outlook.money_high
    assert outlook.in_time == 1.0  # the guard
    assert outlook.interruptions > 0


def test_windows_are_spread_over_the_recording() -> None:
    assert window_starts(10, 10, 60) == [0]
    assert window_starts(12, 10, 60) == [0, 1, 2]
    assert len(window_starts(500, 10, 60)) == 60
    assert window_starts(500, 10, 60)[-1] == 490
    with pytest.raises(ValueError, match="recorded for 5 slots, and the job has 6"):
        window_starts(5, 6, 60)
