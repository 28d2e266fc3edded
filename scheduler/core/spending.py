"""The cost of held GPUs while their price changes.

Each second keeps the price of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from knowledge.core.domain.cost import cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of an hour of one GPU of a node; 0 is no price.

    It holds from `since` until the next price.

    estimated: nobody noted since when it held.
    """

    since: datetime
    per_hour: float
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount in the currency of the prices.

    It is `estimated` if an estimated price is part of it.
    """

    amount: float
    estimated: bool = False


def spent(start: datetime, end: datetime, prices: Sequence[Price]) -> Spent:
    """Add up what one GPU cost from `start` to `end`.

    Prices are in the order in which they were set.
    """
    amount, estimated = 0.0, False
    for price, following in zip_longest(prices, prices[1:]):
        until = min(following.since, end) if following else end
        seconds = (until - max(price.since, start)).total_seconds()
        if seconds > 0 and price.per_hour:
            amount += cost(seconds, price.per_hour)
            estimated = estimated or price.estimated
    return Spent(amount, estimated)
