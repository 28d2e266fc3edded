"""Which limits a running job will probably pass."""

from __future__ import annotations

import pytest

from knowledge.core.domain.types import Interval
from scheduler.core.job_warnings import WARNINGS, Outlook, PeakGrowth, Risk, chances, likely

LEFT = Interval(100.0, 80.0, 130.0)


def test_a_job_without_limits_has_nothing_to_warn_of():
    assert chances(Outlook(left=LEFT)) == {}


@pytest.mark.parametrize(
    ("deadline_in_s", "warned"), [(60.0, True), (79.0, True), (95.0, False), (200.0, False)]
)
def test_a_deadline_that_nearly_all_ends_miss(deadline_in_s: float, warned: bool):
    found = chances(Outlook(left=LEFT, deadline_in_s=deadline_in_s))
    assert likely(found, []) == ([Risk.LATE] if warned else [])


def test_a_budget_counts_what_is_spent_and_what_is_to_come():
    found = chances(Outlook(left=LEFT, budget=10.0, spent=4.0, cost_per_s=0.1))
    assert likely(found, []) == [Risk.OVER_BUDGET]
    found = chances(Outlook(left=LEFT, budget=20.0, spent=4.0, cost_per_s=0.1))
    assert likely(found, []) == []


@pytest.mark.parametrize(("spent", "warned"), [(9.0, False), (11.0, True)])
def test_what_is_free_now_spends_no_more(spent: float, warned: bool):
    found = chances(Outlook(left=LEFT, budget=10.0, spent=spent))
    assert bool(likely(found, [])) is warned


def test_a_warning_stays_until_it_is_as_likely_as_not():
    found = chances(Outlook(left=LEFT, deadline_in_s=95.0))
    assert likely(found, [Risk.LATE]) == [Risk.LATE]
    assert likely(chances(Outlook(left=LEFT, deadline_in_s=101.0)), [Risk.LATE]) == []


def test_each_cause_says_what_can_be_done():
    assert set(WARNINGS) == set(Risk)


@pytest.mark.parametrize(
    ("peaks", "warned"),
    [
        ((50.0, 60.0, 70.0, 80.0, 90.0), True),
        ((60.0, 80.0, 88.0, 90.0, 90.0), False),  # as long as there is a pause
        ((10.0, 90.0, 90.1, 90.2, 90.3), False),  # the first part does not count
    ],
)
def test_memory_that_never_stops_growing_will_not_last(peaks: tuple[float, ...], warned: bool):
    memory = PeakGrowth(peaks=peaks, steps=50, steps_left=50, capacity=100.0)
    found = chances(Outlook(left=LEFT, memory=memory))
    assert likely(found, []) == ([Risk.OUT_OF_MEMORY] if warned else [])


def test_what_is_not_looked_at_stays_as_it_was():
    found = chances(Outlook(left=LEFT, deadline_in_s=60.0))
    assert likely(found, [Risk.OUT_OF_MEMORY]) == [Risk.LATE, Risk.OUT_OF_MEMORY]
