"""Jobs with deadlines on spot and on-demand nodes: slots, guard, interruptions, nodes asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.market.types import Acquire, MarketView, NodeTerms, Release, SlotOffer
from scheduler.core.market_contracts import contract
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, JobInfo, NodeInfo, Plan, Preempt, Resize, Start, Wait
from scheduler.states import WaitState
from tests.scheduler.core.clusters import job, node, option, running

PERIOD_S = 1800.0
HOURS_12 = 12 * 3600.0
FOUR = option(gpus=4, duration_s=10_010.0)  # 10,000 s of work, 10 s of start-up


def market(price: float | None = 0.9, available: float = 8.0, **more: Any) -> MarketView:
    values: dict[str, Any] = {
        "name": "zone-a", "gpu_model": "A100", "gpus_per_node": 4, "on_demand_price": 3.0, "most_nodes": 4,
        "period_s": PERIOD_S, "offer": SlotOffer(price, available), "usual": SlotOffer(0.9, 8.0),
        "weights": {"greedy": 1.0}, "provisioned": True,
    }  # fmt: skip
    return MarketView(**{**values, **more})


def spot_node(name: str, **more: Any) -> NodeInfo:
    return node(name, 4, market="zone-a", kind=NodeTerms.SPOT, **more)


def on_demand_node(name: str, **more: Any) -> NodeInfo:
    return node(name, 4, market="zone-a", kind=NodeTerms.ON_DEMAND, **more)


def due(name: str = "a", by: float = HOURS_12, **more: Any) -> JobInfo:
    return job(name, FOUR, due_at=by, spot=True, **more)


def decided(
    jobs: list[JobInfo], nodes: list[NodeInfo], of: MarketView, now: float = 0.0, before: Plan | None = None
) -> Plan:
    """The plan; its memory has been through JSON, as an epoch's row brings it."""
    memory = json.loads(json.dumps(dict(before.memory))) if before else {}
    state = ClusterState(jobs=tuple(jobs), nodes=tuple(nodes), memory=memory, markets=(of,))
    return POLICIES["spot"].decide(state, now)


def test_spot_nodes_are_asked_for_first_and_the_job_starts_when_they_are_there() -> None:
    plan = decided([due()], [], market())
    assert plan.nodes == (Acquire("zone-a", 1),)
    (wait,) = plan.actions
    assert isinstance(wait, Wait)
    assert (wait.code, wait.reason) == (
        WaitState.MARKET, "Waits for nodes of zone-a with 4 A100 GPUs, which were asked for.",
    )  # fmt: skip
    later = decided([due()], [spot_node("s1")], market(), 60.0, plan)
    assert later.actions == (Start("a", FOUR, (("s1", 0), ("s1", 1), ("s1", 2), ("s1", 3))),)
    assert later.nodes == ()


def test_without_spot_nodes_it_waits_as_long_as_it_can_and_says_until_when() -> None:
    plan = decided([due()], [on_demand_node("d1")], market(available=0.0))
    (wait,) = plan.actions
    assert isinstance(wait, Wait)
    assert wait.code is WaitState.MARKET
    assert "at 1970-01-01 09:13 UTC at the latest" in wait.reason  # 10,010 s before noon
    assert plan.memory["jobs"]["a"]["inputs"]["latest_switch"] == HOURS_12 - 10_010.0
    assert plan.nodes == (Release("d1"),)  # nobody needs it
    last = 18 * PERIOD_S  # 5.6 slots of work; after one more slot without any there are five left
    before = decided([due()], [], market(available=0.0), last - 1.0, plan)
    assert isinstance(before.actions[0], Wait)
    then = decided([due()], [on_demand_node("d1")], market(available=0.0), last, plan)
    assert isinstance(then.actions[0], Start)


def test_a_job_that_was_measured_to_be_slower_has_to_switch_earlier() -> None:
    slow = contract(due(slower=1.5), [market()], 0.0)
    assert slow is not None
    assert slow.latest_switch() == pytest.approx(HOURS_12 - 15_010.0)
    assert slow.job.rate(4) == pytest.approx(PERIOD_S / 15_000.0)


def test_a_job_that_a_slot_without_progress_would_make_late_leaves_spot_nodes() -> None:
    """Spot nodes may be gone in mid-slot: the promise never rests on them."""
    held = running("a", FOUR, *[("s1", i) for i in range(4)], at=0.0, since=0.0)
    tight = replace(held, due_at=12_600.0, spot=True, work_left=0.8)  # seven slots; 4.4 are needed
    nodes = [replace(spot_node("s1"), free=()), on_demand_node("d1")]
    assert decided([tight], nodes, market(), PERIOD_S).actions == ()
    plan = decided([tight], nodes, market(), 2 * PERIOD_S)
    assert [type(action) for action in plan.actions] == [Resize]
    assert plan.actions[0].gpus[0][0] == "d1"  # type: ignore[union-attr]


def test_inside_a_slot_nothing_is_decided_anew_unless_it_was_interrupted() -> None:
    first = decided([due()], [spot_node("s1")], market())
    held = replace(running("a", FOUR, *[("s1", i) for i in range(4)], at=0.0), due_at=HOURS_12, spot=True)
    busy = replace(spot_node("s1"), free=())
    second = decided([held], [busy], market(price=None), 60.0, first)
    assert second.actions == ()  # the price is gone, and it stays
    assert second.memory["jobs"]["a"]["ran"]
    lost = decided([due(restarts=1)], [], market(available=0.0), 120.0, second)
    assert isinstance(lost.actions[0], Wait)
    assert lost.memory["jobs"]["a"]["spot"] == 0
    third = decided([held], [busy], market(price=None, available=0.0), PERIOD_S, second)
    assert [type(action) for action in third.actions] == [Preempt]  # greedy waits in the next slot


def test_a_notice_of_withdrawal_is_an_interruption() -> None:
    first = decided([due()], [spot_node("s1")], market())
    held = replace(running("a", FOUR, *[("s1", i) for i in range(4)], at=0.0), due_at=HOURS_12, spot=True)
    ran = decided([held], [replace(spot_node("s1"), free=())], market(), 60.0, first)
    leaving = replace(spot_node("s1", withdraw_in_s=120.0), free=())
    plan = decided([held], [leaving, spot_node("s2")], market(), 120.0, ran)
    assert [type(action) for action in plan.actions] == [Resize]
    assert {name for name, _ in plan.actions[0].gpus} == {"s2"}  # type: ignore[union-attr]


def test_a_deadline_nearer_than_a_slot_goes_on_demand_at_once() -> None:
    plan = decided([due(by=1700.0)], [spot_node("s1")], market())
    assert Acquire("zone-a", 1, NodeTerms.ON_DEMAND) in plan.nodes
    assert plan.memory["jobs"]["a"]["inputs"]["late"]


def test_a_market_of_which_nothing_is_known_has_on_demand_nodes_only() -> None:
    unknown = market(price=None, available=0.0, usual=SlotOffer(None, 0.0))
    plan = decided([due(by=20_000.0)], [], unknown)
    assert plan.nodes == (Acquire("zone-a", 1, NodeTerms.ON_DEMAND),)


def test_without_a_forecast_one_answers_that_needs_none() -> None:
    plan = decided([due()], [], market(weights={"pace-5-1": 1.0}))
    assert (plan.memory["jobs"]["a"]["decider"], plan.memory["jobs"]["a"]["by"]) == ("pace-5-1", "ahanp-0.9")
    foreseen = market(weights={"pace-5-1": 1.0}, forecast=(SlotOffer(0.9, 8.0),) * 5)
    plan = decided([due()], [], foreseen)
    assert plan.memory["jobs"]["a"]["by"] == "pace-5-1"
    assert plan.memory["jobs"]["a"]["plans"][0][0] == 1


def test_the_nearest_deadline_has_the_first_of_scarce_spot_nodes() -> None:
    plan = decided([due("late"), due("soon", by=HOURS_12 / 2)], [], market(available=4.0))
    assert plan.memory["jobs"]["soon"]["spot"] == 4
    assert plan.memory["jobs"]["late"]["spot"] == 0


def test_all_other_jobs_are_ranked_by_easy_on_what_is_left() -> None:
    others = [job("b", FOUR), job("c", FOUR, due_at=HOURS_12)]  # c may not use spot nodes
    plan = decided([due(), *others], [spot_node("s1"), on_demand_node("d1"), node("own", 8)], market())
    starts = {
        action.job: {name for name, _ in action.gpus} for action in plan.actions if isinstance(action, Start)
    }
    assert starts == {"a": {"s1"}, "b": {"own"}, "c": {"own"}}


def test_nodes_of_a_market_that_cannot_be_asked_are_never_asked_for() -> None:
    plan = decided([due()], [], market(provisioned=False))
    assert plan.nodes == ()


def test_a_slot_lasts_ten_restarts_at_least() -> None:
    short = contract(due(restart_s=600.0), [market()], 0.0)
    assert short is not None
    assert (short.period_s, short.job.slots, short.job.growing) == (6000.0, 7, pytest.approx(0.9))
    slow = market(changeover_s=300.0, period_s=100.0)
    assert contract(due(), [slow], 0.0).period_s == pytest.approx(3100.0)  # type: ignore[union-attr]


def test_no_market_suits_a_job_of_another_gpu_model_or_without_a_deadline() -> None:
    assert contract(job("a", FOUR, spot=True), [market()], 0.0) is None
    assert contract(replace(due(), options=(option("L40S", 4),)), [market()], 0.0) is None
    assert contract(due(), [market(most_nodes=0)], 0.0) is None
