"""Policies that stop jobs, beside a plain walk that hands out GPUs by rank."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.core.cycle.ranked import Ranked
from scheduler.core.policies import POLICIES
from scheduler.core.policies.least_attained import by_queues
from scheduler.core.types import ClusterState, JobInfo, Preempt, Start
from tests.scheduler.core.clusters import job, node, option, running

NOW = 1000.0


def remaining_s(one: JobInfo) -> tuple[float, ...]:
    return (one.work_left * one.options[0].duration_s.value,)


def tiresias_queue(one: JobInfo) -> tuple[float, ...]:
    queue = sum(one.attained_gpu_s >= limit for limit in (3_600, 36_000))
    return queue, one.submitted_at if one.first_started_at is None else one.first_started_at


def greedy(state: ClusterState, rank: Callable[[JobInfo], tuple[float, ...]]) -> set[str]:
    """The jobs that run if all GPUs are given anew, best ranked first, passing those that do not fit."""
    left = sum(len(one.free) for one in state.nodes) + sum(
        len(one.holds.gpus) for one in state.jobs if one.holds
    )
    chosen = set()
    for one in sorted(
        state.jobs, key=lambda one: (-one.priority, rank(one), not one.holds, one.submitted_at, one.id)
    ):
        if one.options[0].gpus <= left:
            left -= one.options[0].gpus
            chosen.add(one.id)
    return chosen


def crowd(rng: random.Random, nodes: int, gpus_each: int, sizes: list[int]) -> ClusterState:
    """Running and waiting jobs of these sizes; each fits any node with enough free GPUs."""
    jobs, machines = [], []
    for number in range(nodes):
        held = 0
        while (size := rng.choice(sizes)) <= gpus_each - held and rng.random() > 0.1:
            gpus = [(f"n{number}", index) for index in range(held, held + size)]
            jobs.append(running(f"r{len(jobs)}", option(gpus=size), *gpus, since=rng.uniform(-1e4, 0)))
            held += size
        free = tuple(range(held, gpus_each))
        machines.append(replace(node(f"n{number}", 0, total=gpus_each), free=free))
    jobs += [job(f"w{number}", option(gpus=rng.choice(sizes))) for number in range(rng.randint(1, 12))]
    return ClusterState(jobs=tuple(_varied(rng, one) for one in jobs), nodes=tuple(machines))


def _varied(rng: random.Random, one: JobInfo) -> JobInfo:
    ran = one.holds is not None or rng.random() < 0.5
    return replace(
        one,
        submitted_at=rng.uniform(-2e4, -1e4),
        options=(option(gpus=one.options[0].gpus, duration_s=rng.uniform(10, 1e4)),)
        if one.holds is None
        else one.options,
        work_left=rng.uniform(0.1, 1.0),
        attained_gpu_s=rng.uniform(0, 5e4) if ran else 0.0,
        first_started_at=rng.uniform(-1e4, 0) if ran else None,
        unsaved_s=rng.choice([0.0, 5.0]),
        restart_s=0.0,  # a stop costs less than what is left, so that every job is worth one
        priority=rng.choice([0, 0, 1]),
    )


@pytest.mark.parametrize("name", ["srtf", "las", "tiresias", "gittins", "uwfq"])
def test_what_a_victim_leaves_over_goes_to_a_job_that_was_passed(name: str) -> None:
    """It may stop nobody yet, as it was stopped itself a moment ago."""
    own = option(gpus=1, duration_s=10.0)
    victim = running(
        "victim", option(gpus=2, duration_s=1e6), ("n", 0), ("n", 1), attained_gpu_s=1e6, user="v"
    )
    passed = job("passed", own, at=0, stopped_at=990.0, preempted_at=990.0, user="u", first_started_at=0.0)
    taker = job("taker", option(gpus=1, duration_s=20.0), at=1, user="w")
    state = ClusterState(jobs=(victim, passed, taker), nodes=(node("n", 0, total=2),))
    if name == "uwfq":  # stops only at the ends of segments
        held = replace(victim.holds, since=NOW - 901) if victim.holds else None
        state = replace(state, jobs=(replace(victim, holds=held), passed, taker))
    plan = {action.job: action for action in POLICIES[name].decide(state, NOW).actions}
    assert isinstance(plan["victim"], Preempt)
    assert isinstance(plan["taker"], Start)
    assert isinstance(plan["passed"], Start)


@pytest.mark.parametrize("policy", ["srtf", "tiresias"])
@pytest.mark.parametrize(("nodes", "gpus_each", "sizes"), [(1, 16, [1, 2, 3, 4, 8]), (4, 2, [1])])
def test_those_run_that_a_plain_walk_would_run(
    policy: str, nodes: int, gpus_each: int, sizes: list[int]
) -> None:
    """On one node gangs of any size fit side by side, and a job of one GPU fits anywhere."""
    found = POLICIES[policy]
    assert isinstance(found, Ranked)
    plain = replace(found, rules=replace(found.rules, min_run_s=0.0, cooldown_s=0.0, hysteresis=0.0))
    if policy == "tiresias":
        plain = replace(plain, key=by_queues(promotion=0))
    for seed in range(150):
        state = crowd(random.Random(seed), nodes, gpus_each, sizes)
        actions = plain.decide(state, NOW).actions
        stopped = {action.job for action in actions if isinstance(action, Preempt)}
        started = {action.job for action in actions if isinstance(action, Start)}
        ours = {one.id for one in state.jobs if one.holds} - stopped | started
        assert ours == greedy(state, tiresias_queue if policy == "tiresias" else remaining_s), seed
