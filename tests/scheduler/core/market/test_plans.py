"""Three plans for a job with a deadline, over windows of its market."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from knowledge.core.domain.types import Interval
from scheduler.core.market.plans import market_plans, slowness
from scheduler.core.market.quotes import Series
from scheduler.core.market.recording import Recording, recorded
from tests.scheduler.core.market.examples import JOB

SURE = Interval(3600.0)


def quiet(slots: int = 200, price: float = 0.3, available: float = 4.0) -> Recording:
    return recorded(Series(0.0, 1800.0, np.full(slots, price), np.full(slots, available)))


def test_on_a_market_that_never_changes_spot_nodes_cost_their_share() -> None:
    found = market_plans(JOB, SURE, quiet(), {"greedy": 1.0})
    on_demand, safe, portal = found.outlooks
    assert [one.decider for one in found.outlooks] == ["on-demand", "greedy", "portal"]
    # 19 in the worked example; a twentieth of the last slot, of three GPUs, is not needed
    assert (on_demand.money, on_demand.slots) == pytest.approx((18.85, 5.95))
    assert (safe.money, safe.slots) == pytest.approx((0.3 * 4 * 4.6, 4.6))
    assert (portal.money, portal.slots, portal.in_time) == (safe.money, safe.slots, 1.0)
    assert found.cheapest == portal  # the other is a yardstick
    assert not found.without_spot


def test_the_portal_draws_deciders_by_their_weights() -> None:
    market, two = quiet(price=0.7), ("greedy", "ahanp-0.5")
    alone = [market_plans(JOB, SURE, market, {name: 1.0}).outlooks[2].money for name in two]
    mixed = market_plans(JOB, SURE, market, dict.fromkeys(two, 1.0)).outlooks[2]
    assert (mixed.money_low, mixed.money_high) == pytest.approx((min(alone), max(alone)))
    assert min(alone) < max(alone)


def test_a_job_that_may_run_longer_than_predicted_may_miss_its_deadline() -> None:
    doubtful = Interval(3600.0, 3000.0, 5400.0)  # 18 of the 24 units that can be done in time; up to 27
    on_demand, safe, _ = market_plans(JOB, doubtful, quiet(), {}).outlooks
    assert 0.5 < safe.in_time < 1.0
    assert safe.money_low < safe.money < safe.money_high
    assert on_demand.money_low < on_demand.money < on_demand.money_high


def test_a_deadline_that_nothing_can_keep_is_missed_and_the_job_goes_on() -> None:
    found = market_plans(replace(JOB, work=40.0), SURE, quiet(), {})
    assert [one.in_time for one in found.outlooks] == [0.0, 0.0, 0.0]
    assert found.outlooks[0].slots == 11.0  # 39.6 after ten slots, a tenth of the first being lost
    assert found.outlooks[0].money == pytest.approx(44.0)


def test_without_enough_of_the_market_there_is_the_plan_on_demand_alone() -> None:
    for market, why in ((quiet(3), "recorded for 3 slots"), (quiet(available=0.0), "No spot node")):
        found = market_plans(JOB, SURE, market, {})
        assert [one.decider for one in found.outlooks] == ["on-demand"]
        assert why in found.without_spot


def test_slowness_has_the_predicted_interval() -> None:
    times = slowness(Interval(100.0, 80.0, 150.0), 1000)
    low, middle, high = np.quantile(times, [0.1, 0.5, 0.9])
    assert (low, middle, high) == pytest.approx((0.8, 1.0, 1.5), rel=0.02)
    assert slowness(SURE, 3) == [1.0] * 3
