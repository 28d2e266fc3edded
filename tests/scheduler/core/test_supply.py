"""Policies that divide a cluster.

A job counts on the GPUs that can train by its tuning, and on no others.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.time_shares import time_shares
from scheduler.core.policies.pollux import POLLUX
from scheduler.core.types import ClusterState, NodeInfo, Start, Wait
from tests.scheduler.core.clusters import by_qlora, decide, job, node, option, running

DIVIDING = ("sia", "pollux", "gavel")
LACKS = frozenset({"qlora"})
UNNAMED = replace(option(gpus=1), config=replace(option(gpus=1).config, tuning=""))  # as in simulations


def cluster(able: int, unable: int) -> list[NodeInfo]:
    return [node("able", able), node("unable", unable, cannot_train=LACKS)]


def test_a_tuning_that_not_all_nodes_can_train_has_a_limit_of_its_own() -> None:
    """Free GPUs and those of the jobs that may be moved count, of ready nodes."""
    holder = running("r", option(gpus=2), ("able", 6), ("able", 7))
    nodes = (*cluster(6, 4), node("away", 8, ready=False))
    supply = Capacity.of(ClusterState(jobs=(holder,), nodes=nodes), [holder])
    assert supply.gpus == {("A100", ""): 12, ("A100", "qlora"): 8}
    qlora, lora = by_qlora(option(gpus=8)), option(gpus=8)
    assert supply.has(qlora)
    supply.take(lora)
    assert supply.gpus == {("A100", ""): 4, ("A100", "qlora"): 8}
    assert not supply.has(qlora)


def test_an_option_without_a_tuning_counts_once() -> None:
    supply = Capacity({("A100", ""): 8})
    supply.take(UNNAMED)
    assert supply.gpus == {("A100", ""): 7}


@pytest.mark.parametrize("policy", DIVIDING)
def test_two_priorities_of_jobs_without_a_tuning_fill_the_cluster(policy: str) -> None:
    jobs = [job(f"j{number}", UNNAMED, priority=number % 2) for number in range(8)]
    found = decide(policy, jobs, [node("n", 8)])
    assert all(isinstance(found[one.id], Start) for one in jobs)


@pytest.mark.parametrize("policy", DIVIDING)
def test_nobody_is_wished_more_than_the_nodes_that_can_train_it_have(policy: str) -> None:
    """Two GPUs can train by qlora: the one job gets them, and the other is left out."""
    two = by_qlora(option(gpus=2, rate=20))
    found = decide(policy, [job("a", two), job("b", two)], cluster(2, 6))
    assert found["a"] == Start("a", two, (("able", 0), ("able", 1)))
    assert isinstance(found["b"], Wait)


@pytest.mark.parametrize("policy", DIVIDING)
def test_jobs_that_can_run_anywhere_leave_room_for_those_that_cannot(policy: str) -> None:
    jobs = [job("anywhere", option(gpus=2)), job("picky", by_qlora(option(gpus=2)), at=1.0)]
    found = decide(policy, jobs, cluster(2, 2))
    assert found["anywhere"] == Start("anywhere", jobs[0].options[0], (("unable", 0), ("unable", 1)))
    assert found["picky"] == Start("picky", jobs[1].options[0], (("able", 0), ("able", 1)))


@pytest.mark.parametrize("policy", ["sia", "pollux"])
def test_jobs_share_the_gpus_that_they_can_use_instead_of_some_taking_all(policy: str) -> None:
    """Jobs share the GPUs that can train by their tuning.

    Only four GPUs can train by qlora. With all twelve counted, each job would be wished two, and
    one would get none.
    """
    small, large = by_qlora(option(gpus=1, rate=10)), by_qlora(option(gpus=2, rate=11))
    nodes = [node("a", 2), node("b", 2), node("unable", 8, cannot_train=LACKS)]
    found = decide(policy, [job(name, small, large) for name in "xyz"], nodes)
    assert all(isinstance(action, Start) for action in found.values())


def test_gavel_normalises_by_the_share_that_a_job_could_have() -> None:
    """One of two GPUs can train the picky job: both jobs get the whole time of one."""
    one = option(gpus=1, rate=10)
    supply = Capacity({("A100", ""): 2, ("A100", "qlora"): 1})
    picky = by_qlora(one)
    options = {"a": {"A100": one}, "b": {"A100": picky}, "c": {"A100": picky}}
    jobs = [job(name, found["A100"]) for name, found in options.items()]
    shares = time_shares(jobs, options, supply).of_jobs
    assert [shares[name]["A100"] for name in "abc"] == pytest.approx([1.0, 0.5, 0.5], abs=1e-3)


def test_pollux_compares_with_a_fair_share_of_what_a_job_can_use() -> None:
    """Pollux compares with a fair share of the GPUs that a job can use.

    A running job stays on its one GPU rather than move to four that cannot train by its tuning.
    """
    small, large = by_qlora(option(gpus=1, rate=10)), by_qlora(option(gpus=4, rate=40))
    holder = replace(running("old", small, ("able", 0)), options=(large, small))
    supply = Capacity({("A100", ""): 8, ("A100", "qlora"): 1})
    assert POLLUX.choose([holder], [[small, large]], supply, 0.0) == [(holder, small)]
