"""Samples that cannot be true are refused by name; gaps are unknown."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from scheduler.core.market.quotes import BadQuote, by_slot, checked
from scheduler.core.market.types import NOTHING, Quote, SlotOffer

NOW = 10_000.0


@pytest.mark.parametrize(
    ("quotes", "problem"),
    [
        ([Quote(0, -0.01, 1)], r"sample 1: price is -0.01; give a price .* of 0 or more"),
        ([Quote(0, nan, 1)], "sample 1: price is nan"),
        ([Quote(0, inf, 1)], "sample 1: price is inf"),
        (
            [Quote(0, 3000.0, 1)],
            "sample 1: price is 3000 for an on-demand price of 3 .* one GPU and one hour",
        ),
        ([Quote(0, 1.0, -1)], "sample 1: available is -1"),
        ([Quote(0, None, None)], "sample 1: price and available are both missing"),
        ([Quote(nan, 1.0, 1)], "sample 1: at is nan"),
        ([Quote(NOW + 60, 1.0, 1)], "sample 1: at is 60 s in the future"),
        ([Quote(5, 1.0, 1), Quote(5, 1.0, 2)], "sample 2: at is that of the sample before"),
        ([Quote(5, 1.0, 1), Quote(4, 1.0, 2)], "sample 2: at is before .* sort the samples"),
    ],
)
def test_samples_that_cannot_be_true_are_refused(quotes: list[Quote], problem: str) -> None:
    with pytest.raises(BadQuote, match=problem):
        checked(quotes, 3.0, NOW)


def test_good_samples_stay_as_they_are() -> None:
    quotes = (Quote(0, 0.0, 0), Quote(1, None, 4), Quote(NOW, 2999.0, None))
    assert checked(quotes, 3.0, NOW) == quotes
    assert checked([Quote(0, 1e9, 1)], 0.0, NOW)  # of a market without an on-demand price


def test_a_sample_counts_for_two_slots_and_then_nothing_is_known() -> None:
    quotes = [Quote(0, 1.0, 2), Quote(150, None, 3), Quote(600, 2.0, 1)]
    series = by_slot(quotes, since=0, until=700, period_s=100, gpus_per_node=4)
    assert np.array_equal(series.available, [8, 8, 12, 12, nan, nan, 4, 4], equal_nan=True)
    assert np.array_equal(series.price, [1, 1, 1, nan, nan, nan, 2, 2], equal_nan=True)
    assert series.offer(0) == SlotOffer(1.0, 8.0)
    assert series.offer(3) == SlotOffer(None, 12.0)
    assert series.offer(4) == NOTHING


def test_a_market_without_a_sample_offers_nothing() -> None:
    series = by_slot([], since=0, until=300, period_s=100)
    assert [series.offer(slot) for slot in range(len(series))] == [NOTHING] * 4
