"""EASY backfill: the first waiting job is never delayed by those behind it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest

from scheduler.core.placement.fit import FreeGpus
from scheduler.core.policies import POLICIES
from scheduler.core.policies.easy_backfill import EASY
from scheduler.core.types import ClusterState, GpuSite, JobInfo, NodeInfo, Start, Topology, Wait
from tests.scheduler.core.clusters import decide, job, node, option, running

easy = partial(decide, "easy")
HOLDER = running("r", option(gpus=2, duration_s=100), ("n", 2), ("n", 3))
HEAD = job("head", option(gpus=4), at=0)


def test_a_job_that_ends_before_the_head_can_start_fills_the_gap() -> None:
    short, long = option(gpus=1, duration_s=100), option(gpus=1, duration_s=101)
    plan = easy([HOLDER, HEAD, job("short", short, at=1), job("long", long, at=2)], [node("n", 2, total=4)])
    assert plan["short"] == Start("short", short, (("n", 0),))
    assert plan["long"].reason == "Needs 1 A100 GPU; 1 is free. It would delay a job that goes before it."  # type: ignore[union-attr]
    assert plan["head"].code == "busy"  # type: ignore[union-attr]


def test_a_long_job_may_use_gpus_outside_the_reservation() -> None:
    nodes = [node("n", 2, total=4), node("m", 1)]
    plan = easy([HOLDER, HEAD, job("long", option(gpus=1, duration_s=1e6), at=1)], nodes)
    assert plan["long"] == Start("long", option(gpus=1, duration_s=1e6), (("m", 0),))


def test_without_known_ends_nobody_passes_on_the_heads_gpus() -> None:
    nodes = [node("n", 2, total=4), node("m", 1, model="L40S")]
    jobs = [HEAD, job("tiny", option(gpus=1, duration_s=1), at=1), job("other", option("L40S"), at=2)]
    plan = easy(jobs, nodes)
    assert isinstance(plan["tiny"], Wait)
    assert isinstance(plan["other"], Start)


def test_the_promise_is_kept_while_others_come_and_go() -> None:
    nodes = (node("n", 2, total=4),)
    first = EASY.decide(ClusterState(jobs=(HOLDER, HEAD), nodes=nodes), 0.0)
    assert first.memory["reservation"]["at"] == 100.0
    late = running("r", option(gpus=2, duration_s=200), ("n", 2), ("n", 3))  # its prediction got worse
    filler = job("filler", option(gpus=1, duration_s=120), at=1)
    again = EASY.decide(ClusterState(jobs=(late, HEAD, filler), nodes=nodes, memory=first.memory), 10.0)
    assert again.memory == first.memory
    assert not any(isinstance(action, Start) for action in again.actions)


def test_what_starts_now_counts_for_the_heads_reservation() -> None:
    jobs = [
        job("first", option(gpus=2, duration_s=50), at=-1),
        HEAD,
        job("short", option(gpus=1, duration_s=50), at=1),
    ]
    plan = easy(jobs, [node("n", 4)])
    assert isinstance(plan["first"], Start)
    assert isinstance(plan["short"], Start)


def test_a_job_fills_the_gap_that_its_time_limit_fits_into() -> None:
    """It is over by then at the latest, also if nobody knows how long it takes."""
    for duration_s in (300.0, 0.0):
        for run_left_s, starts in ((100.0, True), (101.0, False), (None, False)):
            last = job("s", option(gpus=1, duration_s=duration_s), at=2, run_left_s=run_left_s)
            plan = easy([HOLDER, HEAD, last], [node("n", 2, total=4)])
            assert isinstance(plan["s"], Start) is starts, (duration_s, run_left_s)


def textbook_starts(state: ClusterState) -> set[str]:
    """Who starts under EASY as in a textbook, on one node, where a reservation is a number of GPUs."""
    free = len(state.nodes[0].free)
    ends = [(one.releases_in_s or 0.0, len(one.holds.gpus)) for one in state.jobs if one.holds]
    starts: set[str] = set()
    shadow_s, extra = float("inf"), None
    for one in sorted(state.waiting, key=lambda job: (job.submitted_at, job.id)):
        gpus, lasts_s = one.options[0].gpus, one.options[0].duration_s.value
        if extra is None and gpus > free:
            there = free
            for end_s, released in sorted(ends):
                there, shadow_s = there + released, end_s
                if there >= gpus:
                    break
            extra = there - gpus
        elif gpus <= free and (extra is None or lasts_s <= shadow_s or gpus <= extra):
            extra = extra - gpus if extra is not None and lasts_s > shadow_s else extra
            free -= gpus
            ends.append((lasts_s, gpus))
            starts.add(one.id)
    return starts


def one_node(rng: Random) -> ClusterState:
    """Running jobs on scattered GPUs of a node, and a queue."""
    total = rng.randint(2, 12)
    indices = rng.sample(range(total), total)
    jobs: list[JobInfo] = []
    while indices and rng.random() < 0.8:
        gpus = [("n", indices.pop()) for _ in range(min(len(indices), rng.randint(1, 4)))]
        jobs.append(running(f"r{len(jobs)}", option(gpus=len(gpus), duration_s=rng.randint(1, 200)), *gpus))
    for number in range(rng.randint(2, 8)):
        own = option(gpus=rng.randint(1, total), duration_s=rng.randint(1, 300))
        jobs.append(job(f"j{number}", own, at=number))
    machine = replace(node("n", 0, total=total), free=tuple(sorted(indices)))
    return ClusterState(jobs=tuple(jobs), nodes=(machine,))


def starts_of(state: ClusterState, policy: str = "easy") -> set[str]:
    plan = POLICIES[policy].decide(state, 0.0)
    return {action.job for action in plan.actions if isinstance(action, Start)}


@pytest.mark.parametrize("seed", range(2))
def test_on_one_node_as_many_start_as_under_a_textbooks_easy(seed: int) -> None:
    rng = Random(seed)
    for _ in range(1000):
        state = one_node(rng)
        assert starts_of(state) == textbook_starts(state)


def head_fits(later: FreeGpus, head: JobInfo) -> bool:
    return any(later.place(one, head) for one in head.options)


def careful_starts(state: ClusterState) -> int:
    """How many start over several nodes, where each is tried: is there still a place for the head then?"""
    free, starts, head, later, at = FreeGpus(state.nodes), 0, None, None, float("inf")
    ends = [(one.releases_in_s or 0.0, one.holds.option, one.holds.gpus) for one in state.jobs if one.holds]
    for one in sorted(state.waiting, key=lambda job: (job.submitted_at, job.id)):
        own = one.options[0]
        gpus = free.place(own, one)
        if head is None and not gpus and free.could_hold(own, one):
            head, later = one, free.copy()
            for end_s, held, released in sorted(ends, key=lambda end: (end[0], end[2])):
                later.give(held, released)
                at = end_s
                if head_fits(later, head):
                    break
            continue
        if not gpus:
            continue
        if later and head and own.duration_s.value > at:
            later.take(own, gpus)
            if not head_fits(later, head):
                later.give(own, gpus)
                continue
        free.take(own, gpus)
        ends.append((own.duration_s.value, own, gpus))
        starts += 1
    return starts


def several_nodes(rng: Random, topology: Topology) -> ClusterState:
    """Full and half-full nodes, of which it is known where their GPUs sit."""
    sites = tuple(GpuSite(socket=index // 4, numa=index // 2, switch=index // 2) for index in range(8))
    jobs: list[JobInfo] = []
    nodes: list[NodeInfo] = []
    for number in range(rng.randint(2, 4)):
        indices = rng.sample(range(8), 8)
        while indices and rng.random() < 0.85:
            gpus = [(f"n{number}", indices.pop()) for _ in range(min(len(indices), rng.choice((1, 2, 4))))]
            own = option(gpus=len(gpus), duration_s=rng.randint(1, 200))
            jobs.append(running(f"r{len(jobs)}", own, *gpus))
        machine = replace(node(f"n{number}", 0, total=8), free=tuple(sorted(indices)), sites=sites)
        nodes.append(machine)
    for number in range(rng.randint(2, 8)):
        size = rng.choice((1, 2, 4, 8, 16)) if number == 0 else rng.choice((1, 1, 2, 4))
        own = option(gpus=size, nodes=2 if size > 8 else 1, duration_s=rng.randint(1, 300))
        close = {"topology": topology, "level": rng.choice((2, 3))} if number == 0 else {}
        jobs.append(job(f"j{number}", own, at=number, **close))
    return ClusterState(jobs=tuple(jobs), nodes=tuple(nodes))


@pytest.mark.parametrize("topology", [Topology.NONE, Topology.BEST_EFFORT, Topology.GUARANTEED])
def test_over_several_nodes_no_fewer_start_than_if_each_is_tried(topology: Topology) -> None:
    rng = Random(5)
    for _ in range(500):
        state = several_nodes(rng, topology)
        assert len(starts_of(state)) >= careful_starts(state)


def test_the_head_gets_other_gpus_once_those_that_ended_in_time_hold_some() -> None:
    """A short job takes a reserved GPU, so that a long one may have the free one that was not reserved."""
    holder = running("r", option(gpus=1, duration_s=100), ("n", 3))
    queue = [job("head", option(gpus=4), at=0), job("short", option(duration_s=50), at=1)]
    nodes = [node("n", 3, total=4), node("m", 0, total=4)]
    plan = easy([holder, *queue, job("long", option(duration_s=1e6), at=2)], nodes)
    assert isinstance(plan["short"], Start)
    assert isinstance(plan["long"], Wait)
