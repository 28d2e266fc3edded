"""Parameters of policies: rules on stopping, and reservations of those that stop nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import clean_parameters, parameters_of, values_of, with_parameters
from scheduler.core.policies.spot import SPOT
from scheduler.core.types import ClusterState, Holding, Preempt, Start
from scheduler.errors import BadParameters
from tests.scheduler.core.clusters import job, node, option, running

# `spot` moves jobs as its market does, and has no figures of its own.
STOPPING = [name for name in LIVE if POLICIES[name].preempts and name != SPOT.name]


RESERVING = ["fair", "sjf", "lucid", "edd", "mdd", "mddc", "uwfq-whole"]


def test_rankings_that_stop_nobody_may_reserve_and_those_by_arrival_have_none() -> None:
    assert {name for name in LIVE if parameters_of(POLICIES[name])} == {*STOPPING, *RESERVING}
    assert all([one.name for one in parameters_of(POLICIES[name])] == ["reserve"] for name in RESERVING)


@pytest.mark.parametrize("name", RESERVING)
@pytest.mark.parametrize(("gap_s", "starts"), [(100.0, True), (101.0, False)])
def test_with_a_reservation_others_start_only_where_that_delays_nobody(
    name: str, gap_s: float, starts: bool
) -> None:
    """The first job needs four GPUs, of which two are held for 100 s; the other ranks behind it."""
    holder = running("r", option(gpus=2, duration_s=100.0), ("n", 2), ("n", 3))
    first = job("first", option(gpus=4, duration_s=20.0), at=0, user="u", due_at=1e3)
    last = job("last", option(duration_s=gap_s), at=1, user="u", due_at=1e6)
    state = ClusterState(jobs=(holder, first, last), nodes=(node("n", 2, total=4),))
    reserving = with_parameters(POLICIES[name], {"reserve": True})
    plan = reserving.decide(state, 0.0)
    assert any(isinstance(action, Start) and action.job == "last" for action in plan.actions) is starts
    assert plan.memory["reservation"]["job"] == "first"
    assert plan.memory["reservation"]["at"] == 100.0
    later = reserving.decide(replace(state, memory=plan.memory), 10.0)
    assert later.memory["reservation"]["at"] == 100.0
    assert "reservation" not in POLICIES[name].decide(state, 0.0).memory


@pytest.mark.parametrize("name", STOPPING)
def test_defaults_are_allowed_and_change_nothing_but_the_limit(name: str) -> None:
    policy = POLICIES[name]
    defaults = values_of(policy, {})
    assert clean_parameters(policy, defaults) == defaults
    changed: Any = with_parameters(policy, {})
    assert changed.rules.limit == defaults["limit"] == (96 if name == "uwfq" else 3)
    assert all(one.help.endswith(".") for one in parameters_of(policy))


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        ("las", {"min_run_s": -1}),
        ("las", {"min_run_s": "60"}),
        ("las", {"min_run_s": True}),
        ("las", {"min_run_s": float("nan")}),
        ("las", {"limit": 1.5}),
        ("las", {"segment_s": 900}),
        ("fifo", {"min_run_s": 60}),
        ("easy", {"reserve": True}),
        ("fair", {"reserve": 1}),
        ("las", {"reserve": True}),
        ("tiresias", {"limits_gpu_s": []}),
        ("tiresias", {"limits_gpu_s": [10, 10]}),
        ("tiresias", {"limits_gpu_s": [10, 5]}),
        ("tiresias", {"limits_gpu_s": 10}),
        ("tiresias", {"limits_gpu_s": "10"}),
        ("uwfq", {"segment_s": 60}),
        ("gittins", {"quantum": 0}),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(policy: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadParameters) as refused:
        clean_parameters(POLICIES[policy], wrong)
    assert set(refused.value.fields) == {f"parameters.{name}" for name in wrong}


@pytest.mark.parametrize("policy", ["las", "tiresias", "gittins"])
@pytest.mark.parametrize(
    ("given", "left", "stopped"),
    [
        ({}, (100.0, 0.5), True),
        ({"spare_restarts": 2}, (100.0, 0.5), False),
        ({"spare_restarts": 2}, (130.0, 0.5), True),
        ({"spare_share": 0.05}, (1e5, 0.04), False),
        ({"spare_share": 0.05}, (1e5, 0.06), True),
    ],
)
def test_a_job_that_is_about_to_end_may_be_spared(
    policy: str, given: dict[str, Any], left: tuple[float, float], stopped: bool
) -> None:
    """A restart costs 60 s; the job that runs has received far more than the one that waits."""
    left_s, work_left = left
    holds = Holding(option=option(duration_s=1e5), gpus=(("n", 0),), since=-1e5, left_s=left_s)
    old = job(
        "old", option(duration_s=1e5), holds=holds, first_started_at=-1e5, attained_gpu_s=1e5, restart_s=60.0,
        work_left=work_left,
    )  # fmt: skip
    state = ClusterState(jobs=(old, job("new", option(duration_s=1e5))), nodes=(node("n", 0, total=1),))
    plan = with_parameters(POLICIES[policy], given).decide(state, 0.0)
    assert any(isinstance(action, Preempt) for action in plan.actions) is stopped


def test_a_policy_follows_its_parameters() -> None:
    """Tiresias with a first queue of 10 GPU-seconds, and nobody stopped within 30 s."""
    holder = running("old", option(duration_s=1e5), ("n", 0), since=-20.0, attained_gpu_s=20.0)
    state = ClusterState(jobs=(holder, job("new", option(duration_s=1e5))), nodes=(node("n", 0, total=1),))

    def stops(**values: Any) -> bool:
        plan = with_parameters(POLICIES["tiresias"], values).decide(state, 0.0)
        return any(isinstance(action, Preempt) for action in plan.actions)

    assert not stops()
    assert not stops(limits_gpu_s=[10.0])
    assert not stops(min_run_s=10.0)
    assert stops(limits_gpu_s=[10.0], min_run_s=10.0)


@pytest.mark.parametrize(("policy", "stopped"), [("uwfq", True), ("las", False)])
def test_the_ends_of_segments_are_no_stops_to_be_spared(policy: str, stopped: bool) -> None:
    """Else a long job would keep its GPUs for the day once it was passed three times."""
    long = option(duration_s=1e6)
    holder = running("long", long, ("n", 0), since=-901.0, user="A", attained_gpu_s=1e5, preemptions=3)
    state = ClusterState(jobs=(holder, job("short", option(), user="B")), nodes=(node("n", 0, total=1),))
    plan = with_parameters(POLICIES[policy], {}).decide(state, 0.0)
    assert any(isinstance(action, Preempt) for action in plan.actions) is stopped
