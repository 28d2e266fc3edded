"""Samples of a market: what is wrong with them, and what they say slot by slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.core.market.types import NOTHING, Quote, SlotOffer

DEAREST = 1000.0  # times the on-demand price; beyond it a price is a mistake
MOST_AVAILABLE = 100_000  # nodes
GAP_SLOTS = 2  # after so many slots without a sample nothing is known

Array = NDArray[np.float64]


class BadQuote(ValueError):
    """A sample that cannot be true; the message names the field and the remedy."""


class QuoteProblem(NamedTuple):
    """The problem of a field of a sample; an empty field is the sample as a whole."""

    field: str
    text: str


def quote_problems(
    quote: Quote, on_demand_price: float, now: float, after: float | None = None
) -> Iterator[QuoteProblem]:
    """The problems of a sample that follows one at `after`; none if it is good."""
    at, price, available = quote
    if not isfinite(at):
        yield QuoteProblem("at", f"at is {at:g}; give the time of the sample in seconds")
    elif at > now:
        text = f"at is {at - now:.0f} s in the future; give the time at which the market was asked"
        yield QuoteProblem("at", text)
    elif after is not None and at == after:
        yield QuoteProblem("at", "at is that of the sample before; give one sample for a moment")
    elif after is not None and at < after:
        yield QuoteProblem("at", "at is before the sample before; sort the samples by time")
    if price is not None and (not isfinite(price) or price < 0):
        yield QuoteProblem("price", f"price is {price:g}; give a price per GPU-hour of 0 or more, or none")
    elif price is not None and price >= DEAREST * on_demand_price > 0:
        text = (
            f"price is {price:g} for an on-demand price of {on_demand_price:g} per GPU-hour;"
            " give it in the portal's currency, for one GPU and one hour"
        )
        yield QuoteProblem("price", text)
    if available is not None and not 0 <= available <= MOST_AVAILABLE:
        text = f"available is {available}; give a number of nodes from 0 to {MOST_AVAILABLE:,}, or none"
        yield QuoteProblem("available", text)
    if price is None and available is None:
        yield QuoteProblem("", "price and available are both missing; give one of them")


def checked(quotes: Iterable[Quote], on_demand_price: float, now: float) -> tuple[Quote, ...]:
    """The samples, each later than the one before. Raises BadQuote."""
    good: list[Quote] = []
    for number, quote in enumerate(quotes, start=1):
        after = good[-1].at if good else None
        for problem in quote_problems(quote, on_demand_price, now, after):
            raise BadQuote(f"sample {number}: {problem.text}")
        good.append(quote)
    return tuple(good)


@dataclass(frozen=True, slots=True)
class Series:
    """A market slot by slot; NaN is unknown. Slot i begins at `since + i · period_s`.

    price: of one GPU for an hour. available: spot GPUs.
    """

    since: float
    period_s: float
    price: Array
    available: Array

    def __len__(self) -> int:
        return len(self.price)

    def offer(self, slot: int) -> SlotOffer:
        """The offer of a slot; unknown is nothing."""
        price, available = self.price[slot], self.available[slot]
        if np.isnan(available):
            return NOTHING
        return SlotOffer(None if np.isnan(price) else float(price), float(available))


def by_slot(
    quotes: Sequence[Quote], *, since: float, until: float, period_s: float, gpus_per_node: int = 1
) -> Series:
    """The samples, in order, as they stood at the beginning of each slot.

    The last slot is the one that begins at `until` or next after it. A sample counts until the next one of
    its kind, but never longer than two slots.
    """
    slots = max(0, ceil((until - since) / period_s - 1e-9) + 1)
    starts: Array = since + period_s * np.arange(slots, dtype=np.float64)
    prices = [(quote.at, quote.price) for quote in quotes if quote.price is not None]
    counts = [(quote.at, quote.available * gpus_per_node) for quote in quotes if quote.available is not None]
    longest = GAP_SLOTS * period_s
    return Series(since, period_s, _held(prices, starts, longest), _held(counts, starts, longest))


def _held(samples: Sequence[tuple[float, float]], starts: Array, longest_s: float) -> Array:
    """The newest value at each start, NaN where it is older than `longest_s`."""
    if not samples:
        return np.full(len(starts), np.nan)
    times, values = np.array(samples, dtype=float).T
    place = np.searchsorted(times, starts + 1e-6, side="right") - 1
    newest = np.maximum(place, 0)
    known = (place >= 0) & (starts - times[newest] <= longest_s + 1e-6)
    return np.where(known, values[newest], np.nan)
