"""A recorded market, with what was foreseen in each of its slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.market.deciders import Decider
from scheduler.core.market.forecast import WEEK_DAYS, foresee, slots_of_a_day
from scheduler.core.market.quotes import Array, Series
from scheduler.core.market.replay import Foresee, Life, live
from scheduler.core.market.types import DeadlineJob, SlotOffer

AHEAD = 5  # slots that deciders look ahead at most


@dataclass(frozen=True, slots=True)
class Recording:
    """Offers by slot, with those that were foreseen then, and the usual one."""

    offers: tuple[SlotOffer, ...]
    foreseen: tuple[tuple[SlotOffer, ...], ...]
    usual: tuple[SlotOffer, ...]

    def __len__(self) -> int:
        return len(self.offers)

    def before(self, slot: int) -> Recording:
        """The view of the market when this slot began."""
        return Recording(self.offers[:slot], self.foreseen[:slot], self.usual[:slot])

    def live(self, job: DeadlineJob, decider: Decider, start: int, foresee: Foresee | None = None) -> Life:
        """The job from this slot on; foresee: other forecasts than those that were made."""
        offers = self.offers[start : start + job.slots]
        return live(
            job, decider, offers, foresee or (lambda slot: self.foreseen[start + slot - 1]), self.usual[start]
        )

    def true(self, start: int) -> Foresee:
        """Forecasts that come true, for a job that starts in this slot."""
        return lambda slot: self.offers[start + slot : start + slot + AHEAD]


def recorded(series: Series, slot_price: float = 1.0) -> Recording:
    """A series with its forecasts.

    slot_price: what a price per hour is multiplied by, so that it is one for a slot.
    """
    day = slots_of_a_day(series)
    prices, counts = series.price * slot_price, series.available
    ahead = [
        (foresee(prices, step, day).values, foresee(counts, step, day).values) for step in range(1, AHEAD + 1)
    ]
    return Recording(
        offers=tuple(_offers(prices, counts)),
        foreseen=tuple(zip(*(_offers(price, np.floor(count + 1e-9)) for price, count in ahead), strict=True)),
        usual=tuple(_offers(_week_means(prices, day), _week_means(counts, day))),
    )


def _offers(prices: Array, counts: Array) -> Sequence[SlotOffer]:
    return [
        SlotOffer(None if np.isnan(price) else float(price), 0.0 if np.isnan(count) else float(count))
        for price, count in zip(prices, counts, strict=True)
    ]


def _week_means(values: Array, day: int) -> Array:
    """The mean of the seven days up to each slot."""
    known = np.isfinite(values)
    total = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    count = np.concatenate([[0.0], np.cumsum(known)])
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - WEEK_DAYS * day, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(
            count[last] > count[first], (total[last] - total[first]) / (count[last] - count[first]), np.nan
        )
