"""Forecasts of a market, by the method that was lately best at each horizon.

There are three: it stays as it is, it is as at this time yesterday, and a least squares line through now and
the time of day, fitted to the last seven days. Each is judged by its mean absolute error over its last 200
forecasts whose outcome is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.market.quotes import Array, Series
from scheduler.core.market.types import SlotOffer

DAY_S = 86_400.0
WEEK_DAYS = 7
JUDGED = 200  # forecasts
LEAST_FITTED = 8  # pairs; a line through fewer says nothing
_RIDGE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonForecast:
    """The forecast for `ahead` slots from now, and its methods.

    errors: mean absolute ones, None before any outcome is known.
    """

    ahead: int
    price: float | None
    available: int
    price_by: str
    available_by: str
    price_error: float | None
    available_error: float | None


def persistence(values: Array, _ahead: int, _day: int) -> Array:
    """The last value, for all times to come."""
    return values.copy()


def yesterday(values: Array, ahead: int, day: int) -> Array:
    """The value at the same time yesterday."""
    found = np.full(len(values), np.nan)
    if ahead <= day <= len(values):
        start = day - ahead
        found[start:] = values[: len(values) - start]
    return found


def regression(values: Array, ahead: int, day: int) -> Array:
    """Least squares of the value on that of `ahead` slots before and the time of day."""
    slots = len(values)
    angle = 2 * np.pi * np.arange(slots) / day
    level = next(iter(values[np.isfinite(values)]), 0.0)  # one that was known in every slot
    rows = np.stack([np.ones(slots), values - level, np.sin(angle), np.cos(angle)], axis=1)
    targets = np.full(slots, np.nan)
    targets[: max(slots - ahead, 0)] = values[ahead:] - level
    known = np.isfinite(rows).all(axis=1) & np.isfinite(targets)
    clean = np.where(known[:, None], rows, 0.0)
    squares = _sums(clean[:, :, None] * clean[:, None, :])
    products = _sums(clean * np.where(known, targets, 0.0)[:, None])
    made = np.arange(slots)
    last = np.maximum(made - ahead + 1, 0)  # pairs whose outcome is known by then
    first = np.minimum(np.maximum(made - WEEK_DAYS * day, 0), last)
    normal, right = squares[last] - squares[first], products[last] - products[first]
    ridge = _RIDGE * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(4) + 1e-12 * np.eye(4)
    lines = np.linalg.solve(normal + ridge, right[:, :, None])[:, :, 0]
    found = np.einsum("ti,ti->t", np.nan_to_num(rows), lines) + level
    return np.where((normal[:, 0, 0] >= LEAST_FITTED) & np.isfinite(values), found, np.nan)


METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    "persistence": persistence, "yesterday": yesterday, "regression": regression,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Forecasts of one quantity at one horizon, by the slot in which they were made.

    best: the number of the method that answers. errors: of each method, by slot, as known then.
    """

    values: Array
    best: Array
    errors: Array


def foresee(values: Array, ahead: int, day: int) -> Foreseen:
    """All forecasts of a series, each made of nothing but what was known in its slot."""
    made = np.stack([method(values, ahead, day) for method in METHODS.values()])
    made = np.clip(made, np.fmin.accumulate(values), np.fmax.accumulate(values))
    errors = _recent_errors(made, values, ahead)
    # A forecaster that cannot answer or has never been judged comes last; persistence wins ties.
    judged = np.where(np.isfinite(errors), errors, np.inf)
    judged = np.where(np.isfinite(made), judged, np.nan)
    judged[0] = np.where(np.isnan(judged[0]), np.inf, judged[0])
    best = np.nanargmin(judged, axis=0)
    return Foreseen(made[best, np.arange(len(values))], best, errors)


def forecasts(series: Series, horizons: int) -> tuple[HorizonForecast, ...]:
    """Forecasts from the last slot of a series.

    Empty where the last slot is unknown: after a gap nothing can be foreseen.
    """
    if not len(series) or np.isnan(series.available[-1]):
        return ()
    day, names = slots_of_a_day(series), tuple(METHODS)
    found = []
    for ahead in range(1, horizons + 1):
        price, available = (foresee(values, ahead, day) for values in (series.price, series.available))
        price_by, available_by = int(price.best[-1]), int(available.best[-1])
        found.append(
            HorizonForecast(
                ahead=ahead,
                price=_known(price.values[-1]),
                available=int(available.values[-1] + 1e-9),
                price_by=names[price_by],
                available_by=names[available_by],
                price_error=_known(price.errors[price_by, -1]),
                available_error=_known(available.errors[available_by, -1]),
            )
        )
    return tuple(found)


def as_offers(found: Sequence[HorizonForecast]) -> tuple[SlotOffer, ...]:
    """Forecasts as deciders take them."""
    return tuple(SlotOffer(one.price, float(one.available)) for one in found)


def usual_offer(series: Series) -> SlotOffer:
    """The means of the last seven days."""
    week = WEEK_DAYS * slots_of_a_day(series)
    price, available = (_known(_mean(values[-week:])) for values in (series.price, series.available))
    return SlotOffer(price, available or 0.0)


def slots_of_a_day(series: Series) -> int:
    return max(1, round(DAY_S / series.period_s))


def _recent_errors(made: Array, values: Array, ahead: int) -> Array:
    """The mean absolute error of each method in each slot.

    It is over the last forecasts whose outcome is known by then.
    """
    slots = values.shape[0]
    wrong = np.full(made.shape, np.nan)
    wrong[:, : max(slots - ahead, 0)] = np.abs(made[:, : max(slots - ahead, 0)] - values[ahead:])
    known = np.isfinite(wrong)
    total, count = _sums(np.where(known, wrong, 0.0).T), _sums(known.astype(float).T)
    last = np.maximum(np.arange(slots) - ahead + 1, 0)
    first = np.maximum(last - JUDGED, 0)
    number = (count[last] - count[first]).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 0, (total[last] - total[first]).T / number, np.nan)


def _sums(values: Array) -> Array:
    """Sums of the first 0, 1, 2, ... rows."""
    return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])


def _mean(values: Array) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
