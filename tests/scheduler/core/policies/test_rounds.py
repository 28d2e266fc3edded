"""Gavel and Pollux: their worked numbers, and how rounds realise them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduler.core.divide import time_shares
from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.time_shares import max_min
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.policies.gavel import GAVEL
from scheduler.core.policies.pollux import POLLUX
from scheduler.core.types import ClusterState, Holding, Preempt, Resize, Start, Topology, Wait
from tests.scheduler.core.clusters import MODELS, decide, job, node, option, running

RATES = np.array([[10.0, 4.0], [6.0, 4.0]])


def test_gavel_gives_both_jobs_half_of_each_type() -> None:
    each_type = np.stack([np.tile(column, (2, 1)) for column in np.eye(2)])
    ones = np.ones((2, 2))
    shares, solved = max_min(RATES, ones, each_type, np.ones(2), ones, np.ones(2))
    assert solved
    assert shares == pytest.approx(np.full((2, 2), 0.5), abs=1e-3)
    assert (RATES * shares).sum(axis=1) == pytest.approx([7, 5], abs=1e-2)


def test_gavel_gives_a_user_of_twice_the_weight_twice_the_throughput() -> None:
    one = np.ones((2, 1))
    shares, _ = max_min(one, one, one[None], np.ones(1), one, np.array([2.0, 1.0]))
    assert shares.ravel() == pytest.approx([2 / 3, 1 / 3], abs=1e-3)


def test_gavel_gives_a_job_on_one_gpu_twice_the_time_of_one_on_two() -> None:
    """Both gain the same by a second: 2 GPUs for 1/2 of the time cost as much as 1 GPU for all of it."""
    one, gpus = np.ones((2, 1)), np.array([[2.0], [1.0]])
    shares, _ = max_min(one, gpus, gpus[None], np.array([2.0]), 2 * one, np.ones(2))
    assert shares.ravel() == pytest.approx([0.5, 1.0], abs=1e-3)


def test_gavels_rounds_alternate_two_jobs_on_one_gpu() -> None:
    one = option(gpus=1)
    first = GAVEL.decide(ClusterState(jobs=(job("a", one), job("b", one)), nodes=(node("n", 1),)), 0.0)
    assert [action.job for action in first.actions if isinstance(action, Start)] == ["a"]
    holder = running("a", one, ("n", 0), since=0.0, at=0.0)
    state = ClusterState(jobs=(holder, job("b", one)), nodes=(node("n", 0, total=1),), memory=first.memory)
    second = GAVEL.decide(state, 360.0)
    assert second.memory["received"] == {"a": {"A100": 360.0}}
    assert {action.job: type(action) for action in second.actions} == {"a": Preempt, "b": Start}


def test_gavels_shares_stay_until_they_are_old_whoever_comes() -> None:
    one = option(gpus=1)
    memory = GAVEL.decide(ClusterState(jobs=(job("a", one),), nodes=(node("n", 1),)), 0.0).memory
    holder = running("a", one, ("n", 0), since=0.0, at=0.0)
    for now, jobs_with_shares in ((1800.0, {"a"}), (2160.0, {"a", "b"})):
        jobs = (holder, job("b", one, at=1000.0))
        state = ClusterState(jobs=jobs, nodes=(node("n", 0, total=1),), memory=memory)
        plan = GAVEL.decide(state, now)
        assert plan.memory["shares"].keys() == jobs_with_shares
        assert plan.memory["received"] == ({"a": {"A100": 1800.0}} if jobs_with_shares == {"a"} else {})


def test_gavel_shares_time_among_the_first_jobs_at_once() -> None:
    """A round before, nobody was there; its memory holds nobody back."""
    nodes = (node("n", 1),)
    nobody = GAVEL.decide(ClusterState(jobs=(), nodes=nodes), 0.0).memory
    first = ClusterState(jobs=(job("a", option(gpus=1), at=60.0),), nodes=nodes, memory=nobody)
    assert GAVEL.decide(first, 360.0).memory["shares"] == {"a": {"A100": pytest.approx(1.0)}}


def worst_off(state: ClusterState, times: Mapping[str, Mapping[str, float]]) -> float:
    """The least normalised throughput at these shares of time of jobs (id) on GPU models."""
    count = len(state.jobs)
    gpus = dict.fromkeys({node.gpu_model for node in state.nodes}, 0)
    for one in state.nodes:
        gpus[one.gpu_model] += one.total
    equal = {model: min(number / count, 1.0) for model, number in gpus.items()}
    whole = max(sum(equal.values()), 1.0)
    found = []
    for one in state.jobs:
        rates = {offer.gpu_model: offer.tokens_per_second.value for offer in one.options}
        fair = sum(rate * equal[model] / whole for model, rate in rates.items())
        found.append(sum(rates.get(model, 0.0) * part for model, part in times[one.id].items()) / fair)
    return min(found)


def shares_of_rounds(state: ClusterState, rounds: int) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """The program's shares of time, and those that so many rounds of 360 s give."""
    holds: dict[str, Holding] = {}
    had = {one.id: dict.fromkeys(MODELS, 0.0) for one in state.jobs}
    memory: Mapping[str, Any] = {}
    for number in range(rounds):
        now = 360.0 * number
        taken = {gpu for held in holds.values() for gpu in held.gpus}
        shown = replace(
            state,
            jobs=tuple(replace(one, holds=holds.get(one.id)) for one in state.jobs),
            nodes=tuple(
                replace(one, free=tuple(index for index in one.free if (one.id, index) not in taken))
                for one in state.nodes
            ),
            memory=memory,
            explain=False,
        )
        plan = GAVEL.decide(shown, now)
        memory = plan.memory
        for action in plan.actions:
            holds.pop(action.job, None)
        for action in plan.actions:
            if isinstance(action, Start | Resize):
                holds[action.job] = Holding(option=action.option, gpus=action.gpus, since=now)
        for name, held in holds.items():
            had[name][held.option.gpu_model] += 1 / rounds
    return dict(memory["shares"]), had


def test_gavels_rounds_give_the_worst_off_job_what_the_program_found() -> None:
    """A job that takes a model on which it has no share would leave that of its share to nobody."""
    rng = Random(1)
    for _ in range(12):
        nodes = tuple(node(f"{model}-n", rng.choice((1, 2, 4)), model=model) for model in MODELS)
        jobs = tuple(
            job(f"j{n}", *(option(model, rate=rng.uniform(100, 1000), duration_s=1e7) for model in MODELS),
                at=float(n))
            for n in range(rng.randint(2, 10))
        )  # fmt: skip
        state = ClusterState(jobs=jobs, nodes=nodes)
        shares, had = shares_of_rounds(state, 100)
        assert worst_off(state, had) >= 0.95 * worst_off(state, shares)


def test_alike_jobs_have_equal_shares_whatever_their_number() -> None:
    rows = np.repeat(np.array([[10.0, 4.0], [6.0, 4.0]]), 500, axis=0)
    ones = np.ones_like(rows)
    each_type = np.stack([np.tile(column, (len(rows), 1)) for column in np.eye(2)])
    shares, solved = max_min(rows, ones, each_type, np.full(2, 500.0), 500 * ones, np.ones(len(rows)))
    assert solved
    assert (shares == shares[[0] * 500 + [-1] * 500]).all()
    assert shares[[0, -1]] == pytest.approx(np.full((2, 2), 0.5), abs=1e-3)


def test_a_program_that_takes_too_many_steps_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All have equal shares then, and each decision says so until shares are found anew."""
    jobs = tuple(job(f"j{n}", *(option(model, rate=100.0 + 7 * n) for model in MODELS)) for n in range(5))
    state = ClusterState(jobs=jobs, nodes=tuple(node(f"{model}-n", 1, model=model) for model in MODELS))
    monkeypatch.setattr(time_shares, "ITERATIONS", 1)
    plan = GAVEL.decide(state, 0.0)
    assert "equal shares of time" in plan.fallback
    assert plan.memory["shares"]["j0"] == plan.memory["shares"]["j4"]
    monkeypatch.undo()
    again = GAVEL.decide(replace(state, memory=plan.memory), 360.0)
    assert again.fallback == plan.fallback
    assert GAVEL.decide(replace(state, solved=plan.solved), 0.0) == plan
    assert not GAVEL.decide(state, 0.0).fallback


def test_gavel_uses_gpus_that_shares_leave_over() -> None:
    plan = decide("gavel", [job(f"j{i}", option(gpus=1)) for i in range(3)], [node("n", 4)])
    assert all(isinstance(action, Start) for action in plan.values())


def test_pollux_gives_a_lone_job_what_serves_it_best() -> None:
    bundles = [option(gpus=gpus, rate=rate) for gpus, rate in ((1, 10), (2, 18.5), (4, 33.4), (8, 30))]
    plan = decide("pollux", [job("j", *bundles)], [node("n", 8)])
    assert isinstance(plan["j"], Start)
    assert plan["j"].option is bundles[2]


def test_pollux_shares_rather_than_leave_a_job_without_gpus() -> None:
    small, large = option(gpus=2, rate=19), option(gpus=4, rate=36)
    holder = replace(running("old", large, *[("n", i) for i in range(4)]), options=(large, small))
    plan = decide("pollux", [holder, job("new", small, large)], [node("n", 0, total=4)])
    assert isinstance(plan["old"], Resize)
    assert isinstance(plan["new"], Start)


def test_pollux_leaves_a_young_job_alone_when_moving_gains_little() -> None:
    small, large = option(gpus=2, rate=19), option(gpus=4, rate=21)
    holder = replace(
        running("old", small, ("n", 0), ("n", 1), at=-100.0, restart_s=60.0), options=(large, small)
    )
    plan = decide("pollux", [holder], [replace(node("n", 0, total=4), free=(2, 3))])
    assert plan == {}
    assert POLLUX.choose([holder], [[small, large]], Capacity({("A100", ""): 4}), 0.0) == [(holder, small)]


@pytest.mark.parametrize("policy", ["gavel", "sia"])
def test_a_running_job_may_stay_where_it_could_not_start_any_more(policy: str) -> None:
    """The node's sites are unknown by now, so close GPUs cannot be had; no lower class takes the job's."""
    held = running("high", option(gpus=7), *(("n", gpu) for gpu in range(1, 8)), priority=1,
                   topology=Topology.GUARANTEED, level=TopologyLevel.NUMA)  # fmt: skip
    found = decide(policy, [held, job("low", option(gpus=2))], [node("n", 1, 8)])
    assert "high" not in found
    assert isinstance(found["low"], Wait)
