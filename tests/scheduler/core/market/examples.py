"""The worked example, and random markets."""

from __future__ import annotations

import random
from collections.abc import Sequence

from scheduler.core.market.replay import Foresee, valued
from scheduler.core.market.types import DeadlineJob, SlotOffer

JOB = DeadlineJob(
    work=18.0, slots=6, rates={size: float(size) for size in (1, 2, 3, 4)}, value=24.0, on_demand_price=1.0,
    growing=0.9, shrinking=0.95,
)  # fmt: skip
OFFERS = tuple(
    SlotOffer(price, available)
    for price, available in zip((0.3, 0.9, 0.3, 0.4, 0.3, 0.5), (4, 1, 0, 3, 4, 4), strict=True)
)
USUAL = SlotOffer(0.45, 8 / 3)


def true(offers: Sequence[SlotOffer] = OFFERS) -> Foresee:
    """Forecasts that come true."""
    return lambda slot: offers[slot:]


def persistent(offers: Sequence[SlotOffer] = OFFERS) -> Foresee:
    """The offer of the slot goes on."""
    return lambda slot: offers[slot - 1 : slot]


def random_offers(rng: random.Random, slots: int, most: int) -> list[SlotOffer]:
    """Prices from a tenth of on demand to a half above it, at times none."""
    return [
        SlotOffer(rng.uniform(0.1, 1.5) if rng.random() > 0.1 else None, rng.randint(0, most))
        for _ in range(slots)
    ]


def random_job(rng: random.Random) -> DeadlineJob:
    """Up to six slots and four GPUs; at times more work than can be done."""
    sizes = rng.sample((1, 2, 3, 4), rng.randint(1, 4))
    rates = {size: size * rng.uniform(0.7, 1.0) + 0.05 * size for size in sorted(sizes)}
    rates = dict(zip(rates, sorted(rates.values()), strict=True))
    slots = rng.randint(1, 6)
    work = slots * max(rates.values()) * rng.uniform(0.2, 1.1)
    return valued(
        DeadlineJob(
            work=work,
            slots=slots,
            rates=rates,
            value=0.0,
            on_demand_price=1.0,
            growing=rng.uniform(0.5, 1.0),
            shrinking=rng.uniform(0.5, 1.0),
            mixes=rng.random() < 0.5,
        )
    )
