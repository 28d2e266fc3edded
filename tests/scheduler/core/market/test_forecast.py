"""Forecasts use the past alone, stay within what was seen, and the best method answers."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from scheduler.core.market.forecast import (
    METHODS,
    as_offers,
    forecasts,
    foresee,
    persistence,
    regression,
    usual_offer,
    yesterday,
)
from scheduler.core.market.quotes import Array, Series
from scheduler.core.market.recording import recorded
from scheduler.core.market.types import NOTHING, SlotOffer

DAY = 48
RNG = np.random.default_rng(18)


def daily(days: int, noise: float = 0.0) -> Array:
    slots = np.arange(days * DAY)
    return 8 + 6 * np.sin(2 * np.pi * slots / DAY) + noise * RNG.normal(size=len(slots))


def series(available: Array, price: float = 0.4) -> Series:
    return Series(0.0, 1800.0, np.full(len(available), price), available)


def test_the_three_methods() -> None:
    values = daily(10)
    assert persistence(values, 3, DAY)[100] == values[100]
    assert yesterday(values, 3, DAY)[100] == pytest.approx(values[103 - DAY])
    assert np.isnan(yesterday(values, 3, DAY)[DAY - 4])
    made = regression(values, 3, DAY)[2 * DAY : -3]
    assert made == pytest.approx(values[2 * DAY + 3 :], abs=1e-3)


def test_a_regression_is_the_least_squares_line() -> None:
    """Against numpy's own, on the pairs of the last seven days."""
    values, ahead, at = daily(12, noise=2.0), 4, 500
    pairs = np.arange(at - 7 * DAY, at - ahead + 1)
    angle = 2 * np.pi * np.arange(len(values)) / DAY
    rows = np.stack([np.ones(len(values)), values, np.sin(angle), np.cos(angle)], axis=1)
    line = np.linalg.lstsq(rows[pairs], values[pairs + ahead], rcond=None)[0]
    assert regression(values, ahead, DAY)[at] == pytest.approx(rows[at] @ line, rel=1e-3)


@pytest.mark.parametrize("ahead", [1, 5])
def test_no_forecast_knows_what_comes(ahead: int) -> None:
    values, cut = daily(10, noise=1.0), 300
    other = values.copy()
    other[cut + 1 :] = RNG.uniform(0, 16, len(values) - cut - 1)
    one, two = foresee(values, ahead, DAY), foresee(other, ahead, DAY)
    assert np.array_equal(one.values[: cut + 1], two.values[: cut + 1], equal_nan=True)
    assert np.array_equal(one.best[: cut + 1], two.best[: cut + 1])


def test_the_best_of_the_last_two_hundred_answers() -> None:
    assert foresee(daily(10), 5, DAY).best[-1] == list(METHODS).index("yesterday")
    walk = np.cumsum(RNG.normal(size=900))
    shuffled = RNG.permutation(walk)
    assert foresee(shuffled, 5, DAY).best[-1] == list(METHODS).index("regression")  # the mean is best
    changing = np.concatenate([daily(10), np.repeat(RNG.uniform(0, 16, 20), 60)])
    assert foresee(changing, 1, DAY).best[-1] == list(METHODS).index("persistence")


def test_forecasts_stay_within_what_was_seen_and_are_whole_gpus() -> None:
    found = forecasts(series(np.round(daily(9, noise=1.0))), 5)
    assert [one.ahead for one in found] == [1, 2, 3, 4, 5]
    assert all(one.price == pytest.approx(0.4) and 0 <= one.available <= 17 for one in found)
    assert as_offers(found)[0] == SlotOffer(found[0].price, float(found[0].available))
    assert found[0].available_error is not None
    assert found[0].available_error > 0


def test_after_a_gap_nothing_is_foreseen() -> None:
    values = daily(9)
    values[-1] = nan
    assert forecasts(series(values), 3) == ()
    assert forecasts(series(np.array([])), 3) == ()
    values[-1] = 4.0
    values[-40:-20] = nan
    assert len(forecasts(series(values), 3)) == 3


def test_usual_is_the_mean_of_seven_days() -> None:
    values = np.concatenate([np.full(5 * DAY, 100.0), np.full(7 * DAY, 3.0)])
    assert usual_offer(series(values)) == SlotOffer(pytest.approx(0.4), 3.0)
    assert usual_offer(series(np.full(4, nan), price=nan)) == NOTHING


def test_a_recording_knows_in_each_slot_what_was_foreseen_then() -> None:
    values = np.round(daily(9, noise=1.0))
    whole = series(values)
    recording = recorded(whole, slot_price=0.5)
    at = 8 * DAY
    then = Series(0.0, 1800.0, whole.price[: at + 1], values[: at + 1])
    expected = [
        SlotOffer(pytest.approx(one.price * 0.5), one.available) for one in forecasts(then, 5) if one.price
    ]
    assert list(recording.foreseen[at]) == expected
    assert recording.usual[at].available == pytest.approx(usual_offer(then).available)
    assert recording.offers[at] == SlotOffer(0.2, values[at])
