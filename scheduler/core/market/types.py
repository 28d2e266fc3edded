"""The market's words as plain values.

A slot is one period of a job's market, counted from the job's submission: never a CPU slot. Deciders count
money in prices of one GPU for one slot; rows and pages in prices of one GPU for one hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple


class NodeTerms(StrEnum):
    """The terms on which a node is there."""

    OWNED = "owned"
    ON_DEMAND = "on_demand"
    SPOT = "spot"  # cheaper, and may be withdrawn at any time


class SlotOffer(NamedTuple):
    """The spot offer of a market in one slot.

    price: of one GPU; None: there is none. available: GPUs that one could hold, those included that are
    held already. A mean of several offers may have a fraction of a GPU.
    """

    price: float | None
    available: float

    def usable(self, most: float) -> float:
        """GPUs on offer for at most this price."""
        return self.available if self.price is not None and self.price <= most else 0.0


NOTHING = SlotOffer(None, 0.0)


class Quote(NamedTuple):
    """A sample of a market: what it offered at a moment (s). None is unknown."""

    at: float
    price: float | None  # of one GPU for an hour
    available: int | None  # spot nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketView:
    """A market as policies see it.

    Prices are of one GPU for an hour, counts are of GPUs. offer: now; an unknown availability is none.
    forecast: offers 1, 2, ... times `period_s` from now; empty: nothing can be foreseen. usual: the mean of
    the last seven days. weights: of the deciders, by name, as learnt; empty: all alike.
    """

    name: str
    gpu_model: str
    gpus_per_node: int
    on_demand_price: float
    most_nodes: int  # that may be held at a time, of either kind
    period_s: float  # the least length of a slot
    offer: SlotOffer = NOTHING
    forecast: tuple[SlotOffer, ...] = ()
    usual: SlotOffer = NOTHING
    weights: Mapping[str, float] = field(default_factory=dict)
    mixes: bool = False  # may a job be on spot and on-demand nodes at once?
    changeover_s: float = 0.0  # δ: until nodes of it have come
    provisioned: bool = False  # can it be asked for nodes? Else they come and go by themselves


@dataclass(frozen=True, kw_only=True)
class DeadlineJob:
    """A job as deciders see it.

    work: L, in any unit. slots: d, until its deadline. rates: H(n), the work that n GPUs do in a slot, for
    each size that it may have. value: v, of ending in time, in money. on_demand_price: of one GPU for a slot.
    growing, shrinking: μ, the share of a slot that is left for work after a change of size.
    grace: γ, after so many times its slots the end is worth nothing. mixes: may one gang be on spot and on
    on-demand nodes at once? cautious: is it on demand where a slot on spot nodes that brings nothing would
    make it late, as every live job is?
    """

    work: float
    slots: int
    rates: Mapping[int, float]
    value: float
    on_demand_price: float
    growing: float = 1.0
    shrinking: float = 1.0
    grace: float = 1.5
    mixes: bool = True
    cautious: bool = False

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """GPU counts that it may have, rising, 0 first."""
        return (0, *sorted(size for size in self.rates if size))

    @property
    def largest(self) -> int:
        """N, its largest size."""
        return self.sizes[-1]

    def rate(self, size: int) -> float:
        """H(n): work in a whole slot."""
        return self.rates[size] if size else 0.0

    def kept(self, size: int, before: int) -> float:
        """μ: the share of a slot that is left for work, after this size before it."""
        if size == before:
            return 1.0
        return self.growing if size > before else self.shrinking


class Progress(NamedTuple):
    """How far a job is when a slot begins."""

    slot: int  # t, from 1
    done: float  # z, in the unit of its work
    size: int  # in the slot before
    on_spot: bool = False  # was that size on spot nodes?


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDecision:
    """The GPUs that a job is to have in a slot, on spot and on demand.

    inputs: what the decider knew, in JSON values: offer, target, plans and whether the guard acted.
    """

    slot: int
    spot: int
    on_demand: int
    decider: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.spot + self.on_demand


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOutlook:
    """The outcome to expect of one way of running a job.

    It comes from replays of recorded windows of the job's market. money: the median; low and high bound an
    80 % interval. in_time: the share of windows in which the job ends by its deadline. slots: the median of
    those until it ends; infinite if most windows give it up. interruptions: their mean number. windows: how
    many were replayed.
    """

    decider: str
    money: float
    money_low: float
    money_high: float
    in_time: float
    slots: float
    interruptions: float
    windows: int


@dataclass(frozen=True, slots=True)
class Acquire:
    """Hold so many nodes of a market and kind in all, present ones included."""

    market: str
    nodes: int
    kind: NodeTerms = NodeTerms.SPOT


@dataclass(frozen=True, slots=True)
class Release:
    """Give this node back to its market; no job is on it."""

    node: str


NodeAction = Acquire | Release
