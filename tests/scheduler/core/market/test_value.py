"""The worth of an end, and the fate of a late job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.market.replay import valued
from scheduler.core.market.types import SlotOffer
from scheduler.core.market.value import late_end, slot_cost, split, value_at
from tests.scheduler.core.market.examples import JOB


def test_the_value_falls_to_nothing_within_half_the_time_again() -> None:
    assert [value_at(JOB, slots) for slots in (1, 6, 7.5, 9, 10)] == [24.0, 24.0, 12.0, 0.0, 0.0]
    assert value_at(replace(JOB, grace=1.0), 7) == 0.0


def test_a_late_job_goes_on_if_that_pays_and_else_stops() -> None:
    assert late_end(JOB, 15.0, 4) == (1, 4.0, 16.0)
    assert late_end(JOB, 0.0, 0) == (0, 0.0, 0.0)  # five more slots are worth nothing


def test_a_gang_that_may_not_mix_is_wholly_on_one_kind() -> None:
    whole = replace(JOB, mixes=False)
    assert split(JOB, 4, SlotOffer(0.3, 3)) == (3, 1)
    assert split(whole, 4, SlotOffer(0.3, 3)) == (0, 4)
    assert split(whole, 3, SlotOffer(0.3, 3)) == (3, 0)
    assert slot_cost(whole, 4, SlotOffer(0.3, 3)) == 4.0


def test_spot_nodes_that_cost_more_than_on_demand_are_left() -> None:
    assert split(JOB, 2, SlotOffer(1.01, 4)) == (0, 2)
    assert split(JOB, 2, SlotOffer(None, 4)) == (0, 2)


def test_an_end_is_worth_its_budget_or_half_more_than_on_demand() -> None:
    assert valued(JOB).value == pytest.approx(1.5 * 19)
    assert valued(JOB, budget=12.0).value == 12.0
