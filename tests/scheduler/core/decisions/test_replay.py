"""A decision that is kept is made again: the same input, the identical plan."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from math import inf, nextafter
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.decisions.decision_json import (
    PackedInput,
    UnreadableDecision,
    pack_plan,
    unpack_options,
    unpack_plan,
)
from scheduler.core.decisions.replay import differences, replay
from scheduler.core.decisions.value_json import READ, raw_all, raw_value
from scheduler.core.divide import time_shares
from scheduler.core.limits import Window
from scheduler.core.market.types import Acquire, MarketView, NodeTerms, Release, SlotOffer
from scheduler.core.policies import LIVE, POLICIES, sia
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.quotas import admission
from scheduler.core.stopping import SENTENCES, StopReason
from scheduler.core.types import ClusterState, Plan, Preempt, Resize, Start, Wait
from scheduler.states import WaitState
from tests.harness.environment import examples
from tests.scheduler.core.clusters import cluster_states, job, node, option, running
from tests.scheduler.core.decisions.kept import Kept
from tests.scheduler.core.policies.crowds import crowded_states

NOW = 1_790_000_000.123456


def kept_and_replayed(name: str, state: ClusterState, now: float) -> Plan:
    """The plan of a policy, after a look at what is kept of it."""
    plan = admission.decide(with_parameters(POLICIES[name], {}), state, now)
    given = Kept(replace(state, solved=plan.solved), now).read()
    assert given.now == now
    assert given.state == replace(state, solved=given.state.solved)
    back = unpack_plan(pack_plan(plan))
    assert back.actions == plan.actions
    assert list(differences(back, replay(name, {}, given))) == []
    return plan


@given(state=cluster_states(), later=cluster_states())
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_every_live_policy_decides_the_same_again(state: ClusterState, later: ClusterState) -> None:
    """Twice in a row, so that its memory is an input as well."""
    for name in LIVE:
        plan = kept_and_replayed(name, state, NOW)
        memory = json.loads(json.dumps(dict(plan.memory)))  # as the epoch's row brings it
        kept_and_replayed(name, replace(later, memory=memory), NOW + 2000.1)


@pytest.mark.parametrize("name", ["sia", "gavel"])
@given(state=crowded_states(limits=True), closed=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_a_policy_that_is_asked_again_within_limits_decides_the_same_again(
    name: str, state: ClusterState, closed: bool
) -> None:
    """Each time with other options barred: what was solved first is no answer to what is asked then."""
    if closed:
        window = Window(closes_at=NOW + 600, ends_at=NOW + 1e4, nodes=frozenset({"n0"}), team="a")
        state = replace(state, windows=(window,))
    kept_and_replayed(name, state, NOW)


@given(state=cluster_states())
def test_values_are_written_together_as_they_are_one_by_one(state: ClusterState) -> None:
    """In each order of their fields, as their bytes have a digest."""
    options = [replace(one, steps=n % 3) for jobs in state.jobs for n, one in enumerate(jobs.options)]
    for values in ([], options, state.nodes, [one.holds for one in state.running]):
        assert list(map(repr, raw_all(values))) == [repr(raw_value(value)) for value in values]


def test_numbers_survive_to_the_last_bit() -> None:
    odd = (nextafter(0.1, 1), 1e-308, inf, 1e22)
    state = ClusterState(
        jobs=tuple(job(f"j{n}", option(duration_s=value), due_at=value) for n, value in enumerate(odd)),
        nodes=(node("n", 1),),
        memory={"at": nextafter(1.0, 2), "whole": 3, "of": {"ü": [None, True]}},
    )
    assert Kept(state, nextafter(NOW, inf)).read().state == state


def test_markets_and_what_is_asked_of_them_are_kept() -> None:
    market = MarketView(
        name="zone-a", gpu_model="v100", gpus_per_node=4, on_demand_price=3.06, most_nodes=8, period_s=1800.0,
        offer=SlotOffer(0.9, 16), forecast=(SlotOffer(None, 0.0), SlotOffer(1.0, 8)),
        usual=SlotOffer(0.95, 10.5), weights={"pace-3-1": 0.25},
    )  # fmt: skip
    rented = replace(node("n", 4), kind=NodeTerms.SPOT, market="zone-a", withdraw_in_s=120.0)
    state = ClusterState(jobs=(), nodes=(rented,), markets=(market,))
    assert Kept(state, NOW).read().state == state
    plan = Plan(
        (), nodes=(Acquire("zone-a", 2), Acquire("zone-a", 1, NodeTerms.ON_DEMAND), Release("node-b"))
    )
    back = unpack_plan(pack_plan(plan))
    assert back == plan
    assert list(differences(back, replace(plan, nodes=plan.nodes[:2]))) == ["what is asked of markets"]


@pytest.mark.parametrize("kind", list(READ), ids=lambda kind: kind.__name__)
def test_every_field_that_json_would_bring_back_otherwise_is_in_the_table(kind: type[Any]) -> None:
    """Also one that is added: plain are those whose type JSON knows."""
    plain = {str, int, float, bool, type(None)}
    types = {
        name: {*get_args(hint)} if isinstance(hint, UnionType) else {hint}
        for name, hint in get_type_hints(kind).items()
    }
    odd = {name for name, either in types.items() if not either <= plain}
    assert odd - {"options"} == set(READ[kind])


@pytest.mark.parametrize(("name", "solver"), [("sia", sia), ("gavel", time_shares)])
def test_a_solver_that_would_find_something_else_is_not_asked_again(
    name: str, solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solution found within its time limit is part of the input."""
    state = ClusterState(
        jobs=(job("a", option(gpus=1), option(gpus=2, rate=1900.0), priority=1), job("b", option(gpus=2))),
        nodes=(node("n", 3),),
    )
    policy = with_parameters(POLICIES[name], {})
    plan = admission.decide(policy, state, NOW)
    assert any(isinstance(action, Start) for action in plan.actions)
    given = Kept(replace(state, solved=plan.solved), NOW).read()
    found = "assign" if name == "sia" else "max_min"

    def gives_up(*args: Any, **more: Any) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(solver, found, gives_up)
    assert list(differences(plan, replay(name, {}, given))) == []
    with pytest.raises(AssertionError, match="solved again"):
        policy.decide(state, NOW)


def test_differences_are_named() -> None:
    one = Start("a", option(), (("n", 0),))
    other = Plan((replace(one, gpus=(("n", 1),)), Resize("b", option(), (("n", 0),))), {"at": 1.0})
    assert list(differences(Plan((one,), {"at": 1.0}), Plan((one,), {"at": 1.0}))) == []
    job_a, job_b, memory = differences(Plan((one,)), other)
    assert job_a.startswith("a: Start(")
    assert job_b.startswith("b: nothing, now Resize(")
    assert memory == "the policy's memory"


def altered(packed: bytes, **changes: Any) -> bytes:
    return zlib.compress(json.dumps({**json.loads(zlib.decompress(packed)), **changes}).encode())


def test_the_option_that_a_job_runs_with_is_kept_once_or_by_itself() -> None:
    """A job that runs again may run with one that it would not be offered any more."""
    state = ClusterState(
        jobs=(
            running("one", option(), ("n", 0)),
            replace(running("own", option(gpus=2), ("n", 1), ("n", 2)), options=(option(),)),
            replace(running("none", option(gpus=1), ("n", 3)), options=()),
        ),
        nodes=(node("n", 0, total=4),),
    )
    kept = Kept(state, NOW)
    assert kept.read().state == state
    held = [holds["option"] for holds in json.loads(zlib.decompress(kept.packed))["jobs"]["holds"]]
    assert held[0] == 0
    assert [one["config"]["number_gpus"] for one in held[1:]] == [2, 1]
    raw = json.loads(zlib.decompress(kept.packed))["jobs"]
    raw["holds"][0]["option"] = 5
    with pytest.raises(UnreadableDecision, match="does not fit"):
        PackedInput(altered(kept.packed, jobs=raw)).given(kept.options)


def test_odd_records_are_refused_in_words() -> None:
    kept = Kept(ClusterState(jobs=(job("a", option()),), nodes=(node("n", 1),)), NOW)
    odd = {
        b"no zlib": "damaged",
        zlib.compress(b"no json"): "damaged",
        zlib.compress(b"[1]"): "layout None",
        altered(kept.packed, layout=7): "layout 7, and this release reads layouts 1 and 2",
        altered(kept.packed, nodes=[{"id": "n"}]): "does not fit this release: .* missing 3 required",
        altered(kept.packed, jobs=[{"id": "a", "submitted_at": 1.0, "of_later": 2}]): "of_later",
        altered(kept.packed, jobs=3): "does not fit",
    }
    for packed, why in odd.items():
        with pytest.raises(UnreadableDecision, match=why):
            PackedInput(packed).given(kept.options)
    with pytest.raises(UnreadableDecision, match=r"options \w+ of the job a are not kept any more"):
        PackedInput(kept.packed).given({})
    with pytest.raises(UnreadableDecision, match="version 99"):
        unpack_options(zlib.compress(b'[{"version": 99}]'))
    with pytest.raises(UnreadableDecision, match="damaged"):
        unpack_plan(b"")
    with pytest.raises(UnreadableDecision, match="no policy gone"):
        replay("gone", {}, kept.read())
    with pytest.raises(UnreadableDecision, match="gavel of this release cannot read it"):
        replay("gavel", {}, Kept(replace(kept.read().state, memory={"shares": {"a": {}}}), NOW).read())


def test_records_of_the_first_layout_are_read() -> None:
    """In it, jobs and actions stood one by one."""
    mine, runs = job("a", option(), priority=2), running("r", option(), ("n", 0))
    state = ClusterState(jobs=(mine, runs), nodes=(node("n", 0, total=1),))
    kept = Kept(state, NOW)
    digests = {one.id: digest for one, digest in zip(state.jobs, kept.options, strict=False)}
    jobs = [{**raw_value(one), "options": digests.get(one.id, digests["a"])} for one in state.jobs]
    jobs[1]["holds"] = {**raw_value(runs.holds), "option": 0}
    old = altered(kept.packed, layout=1, jobs=jobs)
    assert PackedInput(old).given(kept.options).state == state
    stop = Preempt("r", StopReason.GUARANTEE)
    plan = Plan((stop, Wait("a", WaitState.BUSY, "Wait."), Start("b", option(), (("n", 0),))), {"at": 1.0})
    actions = [{"verb": type(one).__name__, **raw_value(one)} for one in plan.actions]
    raw = {"actions": actions, "memory": {"at": 1.0}}
    assert unpack_plan(zlib.compress(json.dumps(raw).encode())) == plan
    actions[0]["reason"] = SENTENCES[stop.reason]  # before reasons had words
    assert unpack_plan(zlib.compress(json.dumps(raw).encode())) == plan
    assert unpack_plan(pack_plan(plan)) == plan
