"""Close GPUs, and whom to stop for them: the worked example and the invariants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import floor, inf
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle.cycle import AHEAD_BY_CLASS
from scheduler.core.placement.clearings import Clearings
from scheduler.core.placement.levels import TopologyLevel, closest
from scheduler.core.placement.topology import disruption, gang_places
from scheduler.core.policies.topology import TOPOLOGY
from scheduler.core.types import ClusterState, GpuSite, JobInfo, Preempt, Start, Topology, Wait
from scheduler.states import WaitState
from tests.scheduler.core.clusters import cluster_states, decide, job, node, option, running
from tests.scheduler.core.policies.crowds import crowded_states

SITES = tuple(GpuSite(socket=i // 4, numa=i // 2, switch=i) for i in range(8))
ONE, TWO = option(gpus=1), option(gpus=2)
topology = partial(decide, "topology")


def example() -> tuple[list[JobInfo], JobInfo]:
    """Return two sockets of two NUMA nodes of two GPUs, and a job.

    g6 is free, g0 and g3 are held by a high priority.
    """
    held = {"high0": (0, 9), "a": (1, 1), "b": (2, 1), "high3": (3, 9), "c": (4, 2), "d": (5, 1), "e": (7, 3)}
    holders = [running(name, ONE, ("n", gpu), priority=priority) for name, (gpu, priority) in held.items()]
    return holders, job("new", TWO, priority=5, topology=Topology.GUARANTEED, level=TopologyLevel.NUMA)


NODE = replace(node("n", 0, total=8, sites=SITES), free=(6,))


@pytest.mark.parametrize(
    ("victims", "level"),
    [
        ("a", TopologyLevel.NODE),
        ("c", TopologyLevel.SOCKET),
        ("d", TopologyLevel.SOCKET),
        ("e", TopologyLevel.NUMA),
        ("cd", TopologyLevel.NUMA),
    ],
)
def test_the_level_of_the_worked_example(victims: str, level: TopologyLevel) -> None:
    holders = {held.id: held for held in example()[0]}
    free = {6, *(held.holds.gpus[0][1] for name in victims if (held := holders[name]).holds)}
    assert closest(SITES, free, 2)[0] == level


def test_a_guarantee_stops_the_lowest_classes_that_will_do() -> None:
    """Rather two jobs of lower classes than one of a higher."""
    holders, new = example()
    plan = topology([*holders, new], [NODE])
    assert {name for name, action in plan.items() if isinstance(action, Preempt)} == {"c", "d"}
    assert plan["new"] == Start("new", TWO, (("n", 4), ("n", 5)))


@pytest.mark.parametrize("seed", range(4))
def test_a_guarantee_stops_those_that_cost_least_on_whichever_node(seed: int) -> None:
    """Of all sets of jobs on all nodes: the lowest of their highest classes, then the cost, then how many."""
    rng = Random(seed)
    for _ in range(60):
        nodes, holders = [], list[JobInfo]()
        for name in ("n", "m"):
            left = rng.sample(range(8), 8)
            while left and rng.random() < 0.9:
                gpus = [(name, left.pop()) for _ in range(min(len(left), rng.choice((1, 1, 2, 3))))]
                own = option(gpus=len(gpus), duration_s=1e6)
                lost = {"unsaved_s": rng.choice((0.0, 50.0, 5000.0)), "restart_s": rng.choice((0.0, 30.0))}
                where = {"priority": rng.choice((-1, 0, 0, 0.5, 1, 2))}
                holders.append(running(f"r{len(holders)}", own, *gpus, **lost, **where))
            nodes.append(replace(node(name, 0, total=8, sites=SITES), free=tuple(sorted(left))))
        count, level = rng.choice((2, 3, 4)), rng.choice((TopologyLevel.SOCKET, TopologyLevel.NUMA))
        level = TopologyLevel.SOCKET if count > 2 else level
        new = job("new", option(gpus=count), priority=2, topology=Topology.GUARANTEED, level=level)
        lowest = min((one.priority for one in holders), default=0.0)
        harms = []
        for where_ in nodes:
            here = [one for one in holders if one.holds and one.holds.gpus[0][0] == where_.id]
            able = [one for one in here if one.priority < 2]
            for size in range(len(able) + 1):
                for gone in combinations(able, size):
                    free = {*where_.free, *(i for one in gone if one.holds for _, i in one.holds.gpus)}
                    if len(free) >= count and closest(SITES, free, count)[0] >= level:
                        highest = max((floor(one.priority) for one in gone), default=-inf)
                        harms.append((highest, disruption(gone, lowest), len(gone)))
        plan = topology([*holders, new], nodes)
        stopped = [one for one in holders if isinstance(plan.get(one.id), Preempt)]
        assert isinstance(plan["new"], Start) is bool(harms)
        if harms:
            highest = max((floor(one.priority) for one in stopped), default=-inf)
            assert (highest, pytest.approx(disruption(stopped, lowest)), len(stopped)) == min(harms)


def test_sets_with_an_unnecessary_victim_are_left_out() -> None:
    holders, _ = example()
    candidates = [held for held in holders if held.priority < 5]
    found = {
        "".join(sorted(v.id for v in place.victims))
        for place in gang_places(NODE, 2, TopologyLevel.NUMA, candidates)
    }
    assert found == {"e", "cd"}


def test_without_a_wish_the_cheapest_victim_goes() -> None:
    holders, new = example()
    plan = topology([*holders, replace(new, topology=Topology.NONE)], [NODE])
    victims = [name for name, action in plan.items() if isinstance(action, Preempt)]
    assert len(victims) == 1
    assert victims[0] in {"a", "b", "d"}


def test_best_effort_weighs_closeness_against_what_is_lost() -> None:
    holders, new = example()
    soft = replace(new, topology=Topology.BEST_EFFORT)
    assert isinstance(topology([*holders, soft], [NODE])["d"], Preempt)
    eager = replace(TOPOLOGY, alpha=0.99)
    plan = eager.decide(ClusterState(jobs=(*holders, soft), nodes=(NODE,)), 0.0)
    assert {action.job for action in plan.actions if isinstance(action, Preempt)} == {"c", "d"}


def test_nobody_is_stopped_if_free_gpus_reach_the_level() -> None:
    holders, new = example()
    other = node("m", 2, total=8, sites=SITES)
    plan = topology([*holders, new], [NODE, other])
    assert plan["new"] == Start("new", TWO, (("m", 0), ("m", 1)))
    assert len(plan) == 1


def test_a_guaranteed_job_waits_rather_than_start_below_its_level_and_holds_up_nobody() -> None:
    _, new = example()
    far = replace(node("n", 0, total=8, sites=SITES), free=(1, 6))
    plan = topology([new, job("any", ONE)], [far])
    assert isinstance(plan["new"], Wait)
    assert plan["new"].reason.startswith(
        "Needs 2 A100 GPUs. 2 are free on one node, but in different sockets; required: one NUMA node."
    )
    assert isinstance(plan["any"], Start)


def test_a_job_waits_behind_one_that_goes_first_though_its_gpus_are_free() -> None:
    large, small = job("large", option(gpus=4)), job("small", ONE, at=1.0)
    plan = topology([large, small], [node("n", 1, total=4)])
    assert plan["large"] == Wait(
        "large", WaitState.BUSY, "Needs 4 A100 GPUs; 1 is free. It starts when running jobs release enough."
    )
    assert plan["small"] == Wait("small", WaitState.BEHIND, f"Needs 1 A100 GPU; 1 is free. {AHEAD_BY_CLASS}")


def test_nvlink_is_closer_than_a_shared_switch() -> None:
    linked = tuple(GpuSite(socket=0, numa=0, switch=i // 2, nvlink=i % 2) for i in range(4))
    assert closest(linked, {0, 1, 2}, 2) == (TopologyLevel.NVLINK, (0, 2))
    assert closest(linked, {0, 1}, 2) == (TopologyLevel.PCIE, (0, 1))
    assert closest((), {3, 1, 2}, 2) == (TopologyLevel.NODE, (1, 2))


def test_with_too_many_victims_to_try_all_sets_the_dearest_stay_where_they_can() -> None:
    holders = [running(f"r{i}", ONE, ("n", i), unsaved_s=float(i)) for i in range(8)]
    new = job("new", option(gpus=7), priority=1)
    plan = topology([*holders, new], [node("n", 0, total=8, sites=SITES)])
    assert {name for name, action in plan.items() if isinstance(action, Preempt)} == {
        f"r{i}" for i in range(7)
    }


@given(state=cluster_states() | crowded_states())
@settings(max_examples=60, deadline=None)
def test_a_guarantee_is_kept_and_only_lower_priorities_are_stopped(state: ClusterState) -> None:
    plan = TOPOLOGY.decide(state, 0.0)
    jobs, nodes = {job.id: job for job in state.jobs}, {node.id: node for node in state.nodes}
    starts = [action for action in plan.actions if isinstance(action, Start)]
    for action in starts:
        started = jobs[action.job]
        if started.topology is Topology.GUARANTEED and action.option.nodes == 1 < action.option.gpus:
            sites = nodes[action.gpus[0][0]].sites
            level, _ = closest(sites, {index for _, index in action.gpus}, action.option.gpus)
            assert level >= started.level
    for action in plan.actions:
        if isinstance(action, Preempt):
            assert any(jobs[start.job].priority > jobs[action.job].priority for start in starts)


@given(state=cluster_states() | crowded_states())
@settings(max_examples=60, deadline=None)
def test_what_is_remembered_of_nodes_changes_no_plan(state: ClusterState) -> None:
    ways = Clearings.ways

    def anew(clearings: Clearings, *asked: Any) -> Any:
        return ways(Clearings(clearings.free, left(clearings)), *asked)

    def left(clearings: Clearings) -> list[JobInfo]:
        every = {job.id: job for jobs in clearings.victims.values() for job in jobs}
        return [every[name] for name in sorted(every)]

    plan = TOPOLOGY.decide(state, 0.0)
    with patch.object(Clearings, "ways", anew):
        assert TOPOLOGY.decide(state, 0.0) == plan


@given(
    held=st.lists(st.integers(1, 3), max_size=6),
    free=st.integers(0, 2),
    count=st.integers(1, 6),
    level=st.sampled_from(list(TopologyLevel)),
)
def test_a_plain_reference_finds_the_same_spots(
    held: list[int], free: int, count: int, level: TopologyLevel
) -> None:
    """held: GPUs of each running job, which lie next to each other, behind the free ones."""
    holders: list[JobInfo] = []
    taken = free
    for number, gpus in enumerate(held):
        indices = range(taken, min(8, taken + gpus))
        if indices:
            holders.append(running(f"r{number}", option(gpus=len(indices)), *(("n", i) for i in indices)))
        taken += len(indices)
    where = replace(node("n", free, total=8, sites=SITES), free=tuple(range(free)))

    def found(victims: Sequence[JobInfo]) -> tuple[TopologyLevel, tuple[int, ...]] | None:
        gpus = {*where.free, *(i for job in victims if job.holds for _, i in job.holds.gpus)}
        return closest(SITES, gpus, count) if len(gpus) >= count else None

    def needed(victims: Sequence[JobInfo]) -> bool:
        reached = found(victims)
        if reached is None or reached[0] < level:
            return False
        fewer = [found([other for other in victims if other is not job]) for job in victims]
        return all(less is None or less[0] < reached[0] for less in fewer)

    sets = [chosen for size in range(7) for chosen in combinations(holders, size)]
    expected = {chosen: found(chosen) for chosen in sets if needed(chosen)}
    assert {
        place.victims: (place.level, place.indices) for place in gang_places(where, count, level, holders)
    } == expected
