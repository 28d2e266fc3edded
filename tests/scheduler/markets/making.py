"""Markets with samples and nodes, as tests need them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from portal.clock import database_now
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Epoch, Market, Node
from scheduler.services.markets.markets import MarketTerms, add_market
from scheduler.services.markets.samples import SampleValues, append_samples, import_samples
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts


def market(name: str = "east", **terms: Any) -> Market:
    """A market of CPU slots at 1.0 on demand."""
    values = {"gpu_model": "cpu", "on_demand_price": 1.0, "max_nodes": 4, **terms}
    return add_market(terms=MarketTerms(name=name, **values), actor=world.admin(), now=database_now())


def sample(
    of: Market, price: float | None = 0.3, available: int | None = 2, *, at: datetime | None = None
) -> None:
    """Something that was seen of the market, a second ago unless said."""
    values = SampleValues(at=at or database_now() - timedelta(seconds=1), price=price, available=available)
    append_samples(market=of, samples=[values], actor=world.admin(), now=database_now())


def recorded_market(hours: int = 48, price: float = 0.25, **terms: Any) -> Market:
    """A market of which two days are recorded, without a change."""
    made, now = market(changeover_s=1.0, **terms), database_now()
    samples = [
        SampleValues(at=now - timedelta(minutes=30 * ago + 1), price=price, available=2)
        for ago in range(2 * hours, -1, -1)
    ]
    import_samples(market=made, samples=samples, actor=None, now=now)
    return made


def market_node(of: Market | None, kind: str = "spot", name: str = "", **more: Any) -> FakeNode:
    """A node whose agent says that it was rented there."""
    said: dict[str, Any] = {"kind": kind, "market": name or (of.name if of else ""), **more}
    node = world.fake_node(heard=False, **said)
    node.sync(facts=facts(**said))
    return node


def next_round() -> None:
    """The policy decides again, as if its round was over."""
    Epoch.objects.update(round_at=database_now() - timedelta(minutes=5))
    refresh_options()
    tick()


def row(node: FakeNode) -> Node:
    """The node's row."""
    return Node.objects.get(pk=node.node_id)
