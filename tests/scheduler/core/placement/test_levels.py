"""Close GPUs under every policy that ranks: taken if possible, waited for if required."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.levels import (
    ANY,
    Closeness,
    TopologyLevel,
    asked,
    worth_of_closeness,
    worthwhile,
)
from scheduler.core.policies import POLICIES
from scheduler.core.types import GpuSite, NodeInfo, Start, Topology, Wait
from tests.scheduler.core.clusters import decide, job, node, option, running

SITES = tuple(GpuSite(socket=i // 4, numa=i // 2, switch=i // 2) for i in range(8))
TWO = option(gpus=2)
RANKING = sorted(POLICIES.keys() - {"pollux", "sia", "gavel"})


def apart(name: str, *free: int) -> NodeInfo:
    return replace(node(name, 0, total=8, sites=SITES), free=free)


@pytest.mark.parametrize("policy", RANKING)
def test_free_gpus_that_lie_together_are_taken(policy: str) -> None:
    plan = decide(policy, [job("a", TWO)], [apart("n", 1, 6, 7)])
    assert plan["a"] == Start("a", TWO, (("n", 6), ("n", 7)))


@pytest.mark.parametrize("policy", RANKING)
def test_if_possible_the_node_with_close_gpus_is_taken_else_any(policy: str) -> None:
    close = job("a", TWO, topology=Topology.BEST_EFFORT, level=TopologyLevel.PCIE)
    plan = decide(policy, [close], [apart("full", 1, 6), apart("roomy", 0, 2, 3, 5)])
    assert plan["a"] == Start("a", TWO, (("roomy", 2), ("roomy", 3)))
    assert decide(policy, [close], [apart("full", 1, 6)])["a"] == Start("a", TWO, (("full", 1), ("full", 6)))


@pytest.mark.parametrize("policy", RANKING)
def test_if_required_it_waits_in_words_and_holds_up_nobody(policy: str) -> None:
    close = job("a", TWO, topology=Topology.GUARANTEED, level=TopologyLevel.NUMA)
    later = job("b", option(gpus=1), at=1.0, priority=-1)
    nodes = [apart("full", 1, 2)]
    plan = decide(policy, [close, later], nodes)
    assert isinstance(plan["a"], Wait)
    apart_or_taken = (
        "Needs 2 A100 GPUs. 2 are free on one node, but at different NUMA nodes; required: one NUMA node. ",
        "Needs 2 A100 GPUs; 1 is free. ",  # once the later job has started
    )
    assert plan["a"].reason.startswith(apart_or_taken)
    assert plan["a"].reason.endswith("until then any job that fits may take them first.")
    assert isinstance(plan["b"], Start)


@pytest.mark.parametrize("policy", ["srtf", "las", "tiresias", "gittins", "uwfq"])
def test_other_policies_stop_nobody_for_closeness(policy: str) -> None:
    close = job("a", TWO, topology=Topology.GUARANTEED, level=TopologyLevel.NUMA, priority=1)
    held = [running(f"r{gpu}", option(gpus=1), ("n", gpu)) for gpu in range(8) if gpu not in (1, 2)]
    plan = decide(policy, [close, *held], [apart("n", 1, 2)])
    assert isinstance(plan["a"], Wait)


def test_each_share_of_a_gang_reaches_the_level() -> None:
    gang = option(gpus=4, nodes=2)
    free = FreeGpus([apart("a", 0, 1), apart("b", 1, 2), apart("c", 2, 3, 5)])
    required = job("g", gang, topology=Topology.GUARANTEED, level=TopologyLevel.PCIE)
    assert free.place(gang, required) == (("a", 0), ("a", 1), ("c", 2), ("c", 3))
    free.take(gang, (("c", 2),))
    assert free.place(gang, required) is None
    assert free.could_hold(gang, required)
    assert not free.could_hold(gang, replace(required, level=TopologyLevel.NVLINK))


@pytest.mark.parametrize(
    ("way", "level", "facts"),
    [
        (
            Topology.AUTOMATIC,
            None,
            "2 GPUs without one PCIe switch in common: 6% to 48% slower; where it can,",
        ),
        (Topology.GUARANTEED, 5, "2 GPUs without one NVLink group in common: 4% to 50% slower; it waits for"),
        (
            Topology.GUARANTEED,
            3,
            "2 GPUs without one NUMA node in common: 44% slower; it waits for 2 that have",
        ),
        (Topology.NONE, None, "Its 2 GPUs may lie anywhere on a node; far apart they are 50% slower."),
        (Topology.GUARANTEED, 2, ""),  # of sockets nothing else is predicted than of the machine
        (Topology.GUARANTEED, 1, ""),
    ],
)
def test_the_worth_of_closeness_in_words(way: Topology, level: int | None, facts: str) -> None:
    apart = replace(TWO, by_level={"nvlink": 100.0, "pcie": 96.0, "numa": 90.0, "node": 50.0})
    said = worth_of_closeness(way, level, apart)
    assert said.startswith(facts)
    assert bool(said) is bool(facts)
    alone = replace(option(gpus=1), by_level=apart.by_level)
    assert worth_of_closeness(way, level, alone) == ""
    assert worth_of_closeness(way, level, replace(apart, by_level={})) == ""


def test_one_gpu_asks_for_nothing_and_automatic_follows_the_option() -> None:
    required = job("g", TWO, topology=Topology.GUARANTEED, level=TopologyLevel.NVLINK)
    assert asked(required, option(gpus=1)) == asked(required, option(gpus=2, nodes=2)) == ANY
    assert asked(required, TWO) == Closeness(Topology.GUARANTEED, TopologyLevel.NVLINK)
    automatic = replace(required, topology=Topology.AUTOMATIC)
    assert asked(automatic, TWO) == ANY
    slow_apart = replace(TWO, by_level={"nvlink": 100.0, "pcie": 96.0, "numa": 90.0, "node": 50.0})
    assert asked(automatic, slow_apart) == Closeness(Topology.BEST_EFFORT, TopologyLevel.PCIE)


@pytest.mark.parametrize(
    ("rates", "level"),
    [
        ((2386, 1454, 1314, 1132, 955), TopologyLevel.NVLINK),  # full, sharded
        ((2540, 2528, 2525, 2519, 2512), TopologyLevel.NODE),  # adapters alone are exchanged
        ((100, 100, 95, 94.9, 90), TopologyLevel.NUMA),
    ],
)
def test_the_level_that_a_job_gains_from(rates: tuple[float, ...], level: TopologyLevel) -> None:
    words = ("nvlink", "pcie", "numa", "socket", "node")
    assert worthwhile(dict(zip(words, rates, strict=True))) is level
    assert worthwhile({}) is TopologyLevel.NODE
