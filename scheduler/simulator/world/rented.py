"""A simulated market.

Its nodes come when they are asked for, and spot nodes go when the trace says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.core.market.quotes import by_slot
from scheduler.core.market.recording import Recording, recorded
from scheduler.core.market.types import Acquire, MarketView, NodeAction, NodeTerms, Quote, SlotOffer
from scheduler.simulator.errors import PolicyBroke
from scheduler.simulator.inputs.market import SimulatedMarket
from scheduler.simulator.world.nodes import Machines, SimulatedNode
from scheduler.simulator.world.runs import Run


class Charges:
    """Brings a running job's progress and money up to a moment."""

    def __init__(
        self, prices: Mapping[str, float], machines: Machines, rented: RentedNodes | None = None
    ) -> None:
        self.prices, self.machines, self.rented = prices, machines, rented
        self._costless = rented is None and not any(prices.values())

    def settle(self, run: Run, now: float) -> None:
        """Bring a running job up to now."""
        if run.charged == now:
            return
        if self._costless:
            run.advance(now, 0.0)
            return
        if self.rented is None or not run.gpus:
            run.advance(now, self.prices[run.held.config.gpu_model])
            return
        node, before = self.machines.by_id[run.gpus[0][0]], run.cost
        run.advance(now, node.price if node.market else self.prices[run.held.gpu_model])
        self.rented.money[node.kind] += run.cost - before


class RentedNodes:
    """The nodes of a market in a simulation, and its view for policies."""

    def __init__(self, market: SimulatedMarket, machines: Machines) -> None:
        """The pool's nodes become its on-demand nodes, away until asked for."""
        self.market, self.machines, self.pool = market, machines, market.on_demand
        self.price: float | None = None
        self.available = 0
        self.interruptions = 0
        self.money: dict[NodeTerms, float] = dict.fromkeys(NodeTerms, 0.0)
        self.on_demand = machines.named(self.pool.gpu_model)
        width = len(str(self.pool.nodes))
        self.spot = [f"{self.pool.gpu_model}-spot-{n:0{width}}" for n in range(1, self.pool.nodes + 1)]
        for name in self.spot:
            machines.add(SimulatedNode(name, self.pool))
        for name in (*self.on_demand, *self.spot):
            node = machines.by_id[name]
            node.kind = NodeTerms.SPOT if name in self.spot else NodeTerms.ON_DEMAND
            node.market, node.price = market.trace.name, self.pool.price_per_gpu_h
            machines.set_ready(name, ready=False)
        self._recording = self._recorded()

    def change(self, quote: Quote) -> list[str]:
        """The market offers something else. Returns the spot nodes that it withdraws."""
        self.price = quote.price if quote.price is not None else self.price
        self.available = quote.available if quote.available is not None else self.available
        for name in self.spot:
            node = self.machines.by_id[name]
            node.price = self.price or 0.0
            node.changed()
        held = [name for name in self.spot if self.machines.by_id[name].ready]
        return held[self.available :]

    def ask(self, actions: Iterable[NodeAction]) -> None:
        """Nodes that were asked for come at once, as far as there are any.

        Raises PolicyBroke.
        """
        for action in actions:
            if not isinstance(action, Acquire):
                self._release(action.node)
                continue
            if action.market != self.market.trace.name:
                raise PolicyBroke(f"nodes were asked of {action.market}, which is no simulated market")
            spot = action.kind is NodeTerms.SPOT
            wanted = min(action.nodes, self.available) if spot else action.nodes
            there = self.spot if spot else self.on_demand
            missing = wanted - sum(self.machines.by_id[name].ready for name in there)
            for name in [name for name in there if not self.machines.by_id[name].ready][: max(missing, 0)]:
                self.machines.set_ready(name, ready=True)

    def view(self, now: float) -> MarketView:
        """The market as policies see it."""
        slot = min(int(now // self.market.period_s), len(self._recording) - 1)
        each = self.pool.gpus_per_node
        return MarketView(
            name=self.market.trace.name,
            gpu_model=self.pool.gpu_model,
            gpus_per_node=each,
            on_demand_price=self.pool.price_per_gpu_h,
            most_nodes=self.pool.nodes,
            period_s=self.market.period_s,
            offer=SlotOffer(self.price, float(min(self.available, self.pool.nodes) * each)),
            forecast=self._recording.foreseen[slot],
            usual=self._recording.usual[slot],
            weights={self.market.decider: 1.0} if self.market.decider else {},
            provisioned=True,
        )

    def _release(self, name: str) -> None:
        node = self.machines.by_id[name]
        if node.free.bit_count() < node.total:
            raise PolicyBroke(f"{name} was given back, but a job is on it")
        self.machines.set_ready(name, ready=False)

    def _recorded(self) -> Recording:
        trace = self.market.trace
        series = by_slot(
            trace.quotes, since=0.0, until=trace.length_s, period_s=self.market.period_s,
            gpus_per_node=self.pool.gpus_per_node,
        )  # fmt: skip
        return recorded(series)
