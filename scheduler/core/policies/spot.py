"""Deadlines on spot and on-demand nodes.

A job with a deadline that may use spot nodes is decided slot by slot of its market, by a decider that is
drawn by learnt weights (scheduler.core.market); all other jobs are ranked as by EASY on the nodes that are
left. Inside a slot nothing is decided anew unless the job was interrupted.

A slot on spot nodes may bring nothing. So where a job could not end in time after a slot without progress, it
goes to on-demand nodes at once: a deadline that on-demand nodes can keep does not depend on spot nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.market.deciders import Situation, SlotPlan, decide
from scheduler.core.market.pool import DECIDERS, FORESEEING, ON_DEMAND, POOL, WITHOUT_FORECASTS
from scheduler.core.market.selection import drawn
from scheduler.core.market.types import (
    NOTHING,
    Acquire,
    MarketView,
    NodeAction,
    NodeTerms,
    Release,
    SlotDecision,
)
from scheduler.core.market.value import split
from scheduler.core.market_contracts import LATEST_SWITCH, Contract, contract
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.policies.easy_backfill import EASY
from scheduler.core.stopping import StopReason
from scheduler.core.types import (
    Action,
    ClusterState,
    Description,
    GpuId,
    JobInfo,
    NodeInfo,
    Plan,
    Preempt,
    Resize,
    Start,
    Wait,
)
from scheduler.states import WaitState

ROUND_S = 60.0
KEPT_PLANS = 6  # as many as a decider averages


@dataclass(frozen=True, slots=True)
class SpotMarkets:
    name: str = "spot"
    description: ClassVar[Description] = Description(
        summary="Deadlines at the least cost on spot and on-demand nodes, also by stopping their jobs; all"
        " other jobs as by easy.",
        order="deadlines by market period, then submission",
        needs="durations, markets, deadlines",
        source="committed-horizon planning, uniform progress (NSDI 2024), own deciders",
    )
    preempts: bool = True
    rules: ClassVar[None] = None
    round_s: float | None = ROUND_S

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Serve jobs with a deadline, the nearest first, then all others on what is left."""
        jobs = list(state.jobs)
        found = [one for job in jobs if (one := contract(job, state.markets, now))]
        found.sort(key=lambda one: (one.info.due_at or 0.0, one.info.id))
        served = {one.info.id for one in found}
        rented = _Rented(state, found)
        rented.serve()
        others = ClusterState(
            jobs=tuple(job for job in jobs if job.id not in served),
            nodes=tuple(node for node in state.nodes if not rented.keeps(node)),
            memory=state.memory.get("easy", {}),
            explain=state.explain,
        )
        rest = EASY.decide(others, now)
        memory = {"easy": dict(rest.memory), "jobs": rented.memory}
        return Plan((*rented.actions, *rest.actions), memory, nodes=rented.asked())


class _Rented:
    """One decision about the jobs with deadlines and the nodes of markets."""

    def __init__(self, state: ClusterState, contracts: Iterable[Contract]) -> None:
        self.state, self.contracts = state, list(contracts)
        self.markets: Mapping[str, MarketView] = {market.name: market for market in state.markets}
        self.nodes = {node.id: node for node in state.nodes if node.market in self.markets}
        self.free = {name: set(node.free) for name, node in self.nodes.items()}
        self.actions: list[Action] = []
        self.memory: dict[str, Any] = {}
        self._known: Mapping[str, Any] = state.memory.get("jobs", {})
        self._needed: Counter[tuple[str, NodeTerms]] = Counter()
        self._taken: Counter[str] = Counter()  # spot GPUs, by market

    def keeps(self, node: NodeInfo) -> bool:
        """Is the node for jobs with deadlines only?"""
        market = self.markets.get(node.market)
        return node.kind is NodeTerms.SPOT or (market is not None and market.provisioned)

    def serve(self) -> None:
        kept = {one.info.id: known for one in self.contracts if (known := self._still_holds(one))}
        for one in self.contracts:
            if one.info.id in kept:
                self._taken[one.market.name] += kept[one.info.id]["spot"]
        for one in self.contracts:
            if one.info.hold:
                self.actions.append(wait_reasons.nowhere(one.info))
                continue
            known = kept.get(one.info.id) or self._decided(one)
            known["ran"] = known["ran"] or one.info.holds is not None
            self.memory[one.info.id] = known
            self._realise(one, known)

    def asked(self) -> tuple[NodeAction, ...]:
        """The nodes that markets are asked for, and those that go back."""
        present: dict[tuple[str, NodeTerms], list[NodeInfo]] = defaultdict(list)
        for node in self.nodes.values():
            if node.ready and node.withdraw_in_s is None:
                present[node.market, node.kind].append(node)
        found: list[NodeAction] = []
        for market in self.state.markets:
            for kind in (NodeTerms.SPOT, NodeTerms.ON_DEMAND) if market.provisioned else ():
                there = present[market.name, kind]
                needed = min(self._needed[market.name, kind], market.most_nodes)
                if needed > len(there):
                    found.append(Acquire(market.name, needed, kind))
                idle = sorted(node.id for node in there if self._is_idle(node))
                spare = len(there) - needed
                found += [Release(node) for node in idle[::-1][:spare]] if spare > 0 else []
        return tuple(found)

    def _is_idle(self, node: NodeInfo) -> bool:
        """Does no job hold GPUs of it, now or after this plan?"""
        return len(node.free) == len(self.free[node.id]) == node.total

    # decisions

    def _still_holds(self, one: Contract) -> dict[str, Any] | None:
        """The decision for this slot, unless the job was interrupted since."""
        known = self._known.get(one.info.id)
        if known is None or known["slot"] != one.slot or one.info.hold:
            return None
        interrupted = known["ran"] and known["spot"] + known["on_demand"] > 0 and not self._stays(one.info)
        return None if interrupted else dict(known)

    def _stays(self, job: JobInfo) -> bool:
        """Does it hold GPUs of which none is about to be withdrawn?"""
        return job.holds is not None and all(
            name not in self.nodes or self.nodes[name].withdraw_in_s is None for name, _ in job.holds.gpus
        )

    def _decided(self, one: Contract) -> dict[str, Any]:
        known = self._known.get(one.info.id, {})
        own = known.get("decider") or drawn(one.market.weights or dict.fromkeys(POOL, 1.0), one.info.id)
        plans = [SlotPlan(slot, tuple(sizes)) for slot, sizes in known.get("plans", ())]
        decision, plan = self._slot_decision(one, own, plans)
        plans = [*plans, *([plan] if plan else [])][-KEPT_PLANS:]
        self._taken[one.market.name] += decision.spot
        return {
            "market": one.market.name, "decider": own, "slot": decision.slot, "spot": decision.spot,
            "on_demand": decision.on_demand, "by": decision.decider, "inputs": dict(decision.inputs),
            "plans": [[made.slot, list(made.sizes)] for made in plans], "ran": False,
        }  # fmt: skip

    def _slot_decision(
        self, one: Contract, own: str, plans: list[SlotPlan]
    ) -> tuple[SlotDecision, SlotPlan | None]:
        job, offer = one.job, one.offer(self._taken[one.market.name])
        inputs: dict[str, Any] = {
            "price": offer.price, "available": offer.available, "done": one.done,
            LATEST_SWITCH: one.latest_switch(),
        }  # fmt: skip
        if one.is_late or one.job.slots < 1:
            return SlotDecision(
                slot=one.slot,
                spot=0,
                on_demand=job.largest,
                decider=ON_DEMAND,
                inputs={**inputs, "late": True},
            ), None
        name, foreseen = _answering(own, one)
        on_spot = one.info.holds is not None and any(self._is_spot(node) for node, _ in one.info.holds.gpus)
        now = Situation(
            job=job, progress=one.progress(on_spot=on_spot), offer=offer, foreseen=foreseen,
            usual=one.usual(), plans=plans,
        )  # fmt: skip
        choice, taken = decide(DECIDERS[name], now)
        spot, on_demand = split(job, taken.size, taken.offer)
        inputs |= {"chosen": choice.size, "guarded": spot + on_demand != choice.size}
        decision = SlotDecision(slot=one.slot, spot=spot, on_demand=on_demand, decider=name, inputs=inputs)
        return decision, choice.plan

    # GPUs

    def _realise(self, one: Contract, known: Mapping[str, Any]) -> None:
        """Give the job its GPUs of this slot, or ask for nodes if they are not there."""
        spot, on_demand = known["spot"], known["on_demand"]
        job, size = one.info, spot + on_demand
        if not size:
            self._idle(one, known["inputs"].get(LATEST_SWITCH, one.latest_switch()))
            return
        kinds = {kind for kind, n in ((NodeTerms.SPOT, spot), (NodeTerms.ON_DEMAND, on_demand)) if n}
        for kind, gpus in ((NodeTerms.SPOT, spot), (NodeTerms.ON_DEMAND, on_demand)):
            self._needed[one.market.name, kind] += -(-gpus // one.market.gpus_per_node)
        if self._has(one, size, kinds):
            return
        if job.holds and not job.preemptible:
            self._keep(one)
        elif place := self._place(one, size, kinds):
            self._take(job, *place)
        elif job.holds:
            self._keep(one)
        elif self.state.explain:
            wanted = wait_reasons.counted_gpus(size, one.market.gpu_model)
            text = f"Waits for nodes of {one.market.name} with {wanted}, which were asked for."
            self.actions.append(Wait(job.id, WaitState.MARKET, text))

    def _idle(self, one: Contract, latest_switch: float) -> None:
        job = one.info
        if job.holds and job.preemptible:
            self._give(job)
            self.actions.append(Preempt(job.id, StopReason.SPOT))
        elif job.holds:
            self._keep(one)
        elif self.state.explain:
            at = datetime.fromtimestamp(latest_switch, UTC).strftime("%Y-%m-%d %H:%M UTC")
            text = f"Waits for spot nodes of {one.market.name}; at {at} at the latest it goes on on demand."
            self.actions.append(Wait(job.id, WaitState.MARKET, text))

    def _has(self, one: Contract, size: int, kinds: set[NodeTerms]) -> bool:
        """Does it hold so many GPUs on nodes of these kinds, which stay?"""
        holds = one.info.holds
        if holds is None or holds.option.gpus != size or not self._stays(one.info):
            return False
        nodes = [self.nodes.get(name) for name, _ in holds.gpus]
        return all(node and node.market == one.market.name and node.kind in kinds for node in nodes)

    def _place(
        self, one: Contract, size: int, kinds: set[NodeTerms]
    ) -> tuple[Option, tuple[GpuId, ...]] | None:
        own = set(one.info.holds.gpus) if one.info.holds else set()
        nodes = [
            replace(node, free=tuple(sorted(self.free[name] | {i for held, i in own if held == name})))
            for name, node in self.nodes.items()
            if node.market == one.market.name and node.kind in kinds and node.withdraw_in_s is None
        ]
        free = FreeGpus(nodes)
        placed = ((option, free.place(option, one.info)) for option in one.options[size])
        return next(((option, gpus) for option, gpus in placed if gpus), None)

    def _take(self, job: JobInfo, option: Option, gpus: tuple[GpuId, ...]) -> None:
        if job.holds:
            self._give(job)
        for name, index in gpus:
            self.free[name].discard(index)
        self.actions.append((Resize if job.holds else Start)(job.id, option, gpus))

    def _give(self, job: JobInfo) -> None:
        for name, index in job.holds.gpus if job.holds else ():
            if name in self.free:
                self.free[name].add(index)

    def _keep(self, one: Contract) -> None:
        """Count the nodes of a job that stays where it is in this period as needed."""
        for name in {name for name, _ in one.info.holds.gpus} if one.info.holds else ():
            if name in self.nodes:
                self._needed[one.market.name, self.nodes[name].kind] += 1

    def _is_spot(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].kind is NodeTerms.SPOT


def _answering(own: str, one: Contract) -> tuple[str, tuple[Any, ...]]:
    """The decider that answers, and what is foreseen.

    A market of which nothing is known has on-demand nodes only; without forecasts one answers that needs
    none.
    """
    if one.market.offer == NOTHING and one.market.usual == NOTHING:
        return ON_DEMAND, ()
    foreseen = one.foreseen()
    return (own if foreseen or own not in FORESEEING else WITHOUT_FORECASTS), foreseen


SPOT = SpotMarkets()
