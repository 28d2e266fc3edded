"""A history of jobs with deadlines on rented nodes, for the live loop and the simulator.

The market's price is recorded and says when spot nodes are worth it. Nodes that are asked for come at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from scheduler.core.market.types import NodeTerms, Quote
from scheduler.models import Market, MarketOrder, MarketSample, Node
from scheduler.selectors.policy import live_policy
from scheduler.services.markets.markets import MarketTerms, add_market
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.importers.market_traces import MarketTrace
from scheduler.simulator.inputs.market import SimulatedMarket
from scheduler.simulator.settings import SimulationSettings
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts
from tests.harness.histories.live import LiveHistory, Size
from tests.harness.histories.planned_jobs import SLOTS, PlannedJob
from tests.harness.histories.simulated import AsPromised, LiveOptions, NotingEngine, trace_job

OF_A_KIND = 2  # nodes
ON_DEMAND_PRICE = 1.0
RENTED = Size(jobs=4, arrivals_s=400, step_s=60, steps=150)
# (seconds, price, spot nodes): too dear for a while, and only one node at first
RECORD = ((0, 0.3, 1), (600, 1.2, 2), (1500, 0.4, 2), (2100, 1.5, 2), (3600, 0.3, 2))


@dataclass
class RentedHistory(LiveHistory):
    """The portal with a market; no more nodes are ready than were asked for."""

    size: Size = RENTED

    def __post_init__(self) -> None:
        terms = MarketTerms(
            name="east", gpu_model="cpu", on_demand_price=ON_DEMAND_PRICE, gpus_per_node=SLOTS,
            max_nodes=OF_A_KIND, changeover_s=0.0, provisioner="cloud",
        )  # fmt: skip
        self.market: Market = add_market(terms=terms, actor=world.admin(), now=self.origin)
        self.owners = [world.admin(), world.admin()]
        self.teams = []
        self.nodes = [*self._rented(NodeTerms.ON_DEMAND), *self._rented(NodeTerms.SPOT)]
        self.plan = [
            PlannedJob(at=at, params={"max_steps": steps}, priority=0, owner=at // 120 % 2, due=at + due)
            for at, steps, due in (
                (0, 15000, 4500),
                (120, 10000, 1500),
                (240, 12000, 7200),
                (360, 9000, 1800),
            )
        ]

    def _rented(self, kind: NodeTerms) -> list[FakeNode]:
        found = []
        for _ in range(OF_A_KIND):
            said: dict[str, Any] = {"kind": kind, "market": "east", "slots": SLOTS}
            node = world.fake_node(**said)
            node.sync(facts=facts(**said))
            found.append(node)
        Node.objects.filter(pk__in=[node.node_id for node in found]).update(state="drained")
        return sorted(found, key=lambda node: node.node_id)

    def _go_on(self, at: float) -> None:
        """The market as seen so far, and the nodes that were asked for."""
        for since, price, available in RECORD:
            if since <= at:
                MarketSample.objects.get_or_create(
                    market=self.market, at=self.origin + timedelta(seconds=since), source="api",
                    defaults={"price": price, "available": available},
                )  # fmt: skip
        super()._go_on(at)

    def _obey(self, at: float) -> bool:
        stopped = super()._obey(at)
        self._rent(at)
        return stopped

    def _rent(self, at: float) -> None:
        here = Node.objects.filter(market=self.market)
        here.filter(give_back=True).exclude(claims__attempt__ended_at=None).update(
            state="drained", give_back=False
        )
        offered = [available for since, _, available in RECORD if since <= at][-1]
        for order in MarketOrder.objects.filter(market=self.market):
            wanted = min(order.nodes, offered) if order.kind == NodeTerms.SPOT else order.nodes
            ready = here.filter(kind=order.kind, state="ready").count()
            away = here.filter(kind=order.kind, state="drained").order_by("id")
            for node in away[: max(0, wanted - ready)]:
                Node.objects.filter(pk=node.pk).update(state="ready")


def simulate_rented(live: RentedHistory, decider: str, period_s: float) -> NotingEngine:
    """The same jobs on the same market in the simulator, where the history begins at 0."""
    quotes = tuple(Quote(float(at), price, available) for at, price, available in RECORD)
    pool = NodeGroup("cpu", OF_A_KIND, SLOTS, ON_DEMAND_PRICE)
    market = SimulatedMarket(
        trace=MarketTrace("east", quotes), on_demand=pool, decider=decider, period_s=period_s
    )
    jobs = [trace_job(live, job, planned, 0.0) for job, planned in zip(live.jobs, live.plan, strict=True)]
    settings = SimulationSettings(report_s=live.size.step_s)
    options = LiveOptions(live.jobs)
    engine = NotingEngine(
        jobs, Cluster((pool,)), live_policy().policy, AsPromised(), options, settings, market=market
    )
    engine.noted = []
    engine.run()
    return engine
