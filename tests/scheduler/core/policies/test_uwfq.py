"""User weighted fair queuing: its worked example, its bound, and its segments."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.ordering.fair_queue import FairQueue
from scheduler.core.policies.uwfq import WHOLE
from scheduler.core.types import ClusterState, Preempt, Start, Wait
from scheduler.simulator.world.fluid import FluidJob, fluid_ends
from tests.scheduler.core.clusters import decide, job, node, option, running

Arrival = tuple[float, str, float]  # (time, user, work)
EXAMPLE: list[Arrival] = [(0, "A", 40), (0, "A", 8), (0, "B", 8), (5, "C", 12)]


def virtual_deadlines(arrivals: list[Arrival], gpus: float) -> tuple[FairQueue, dict[int, float]]:
    queue = FairQueue()
    for number, (at, user, work) in enumerate(arrivals):
        queue.advance(at, gpus)
        queue.submit(str(number), user, work)
    return queue, {int(name): end for name, end in queue.deadlines().items()}


def malleable(arrivals: list[Arrival], gpus: float, rank: dict[int, float]) -> dict[int, float]:
    """Ends when the present job of the smallest rank has all GPUs."""
    left = {number: work for number, (_, _, work) in enumerate(arrivals)}
    now, ends = 0.0, {}
    while left:
        here = [number for number in left if arrivals[number][0] <= now]
        later = min((arrivals[number][0] for number in left if arrivals[number][0] > now), default=1e18)
        if not here:
            now = later
            continue
        first = min(here, key=lambda number: (rank[number], number))
        served = min(left[first] / gpus, later - now)
        now += served
        left[first] -= served * gpus
        if left[first] < 1e-9:
            ends[first] = now
            del left[first]
    return ends


def fluid(arrivals: list[Arrival], gpus: float) -> dict[int, float]:
    """Ends when users share the GPUs evenly, and each user's jobs its share."""
    left = {number: float(work) for number, (_, _, work) in enumerate(arrivals)}
    now, ends = 0.0, {}
    while left:
        here = [number for number in left if arrivals[number][0] <= now]
        later = min((arrivals[number][0] for number in left if arrivals[number][0] > now), default=1e18)
        if not here:
            now = later
            continue
        users = [arrivals[number][1] for number in here]
        rate = {n: gpus / len(set(users)) / users.count(arrivals[n][1]) for n in here}
        step = min(later - now, *(left[number] / rate[number] for number in here))
        now += step
        for number in here:
            left[number] -= rate[number] * step
            if left[number] < 1e-9:
                ends[number] = now
                del left[number]
    return ends


def quick_fluid(arrivals: list[Arrival], gpus: float) -> list[float]:
    """The same by the simulator's way, which keeps heaps instead of stepping all jobs."""
    return fluid_ends([FluidJob(*arrival) for arrival in arrivals], gpus)


def test_the_worked_example() -> None:
    queue, ranks = virtual_deadlines(EXAMPLE, 4)
    assert ranks == pytest.approx({0: 48, 1: 8, 2: 8, 3: 24})
    assert queue.now == pytest.approx(12)
    assert malleable(EXAMPLE, 4, ranks) == pytest.approx({1: 2, 2: 4, 3: 8, 0: 17})
    assert fluid(EXAMPLE, 4) == pytest.approx({2: 4, 1: 7, 3: 11, 0: 17})
    assert quick_fluid(EXAMPLE, 4) == pytest.approx([17, 7, 4, 11])


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from("ABC"), st.integers(1, 40)), min_size=1, max_size=12
    )
)
@settings(max_examples=200, deadline=None)
def test_nobody_ends_later_than_in_the_fluid_system_by_more_than_the_largest_job(
    arrivals: list[Arrival],
) -> None:
    arrivals = sorted(arrivals)
    queue = FairQueue()
    gpus, ranks = 4.0, {}
    for number, (at, user, work) in enumerate(arrivals):
        queue.advance(at, gpus)
        queue.submit(str(number), user, work)
    ranks = {int(name): end for name, end in queue.deadlines().items()}
    ends, fair = malleable(arrivals, gpus, ranks), fluid(arrivals, gpus)
    assert quick_fluid(arrivals, gpus) == pytest.approx([fair[number] for number in range(len(arrivals))])
    largest = max(work for _, _, work in arrivals)
    assert all(ends[number] <= fair[number] + largest / gpus + 1e-6 for number in ends)


def test_more_jobs_gain_a_user_nothing() -> None:
    _, few = virtual_deadlines([(0, "A", 10), (0, "B", 10)], 4)
    _, many = virtual_deadlines([(0, "A", 10), *[(0, "B", 10)] * 9], 4)
    assert few[0] == many[0]


def test_a_user_of_twice_the_weight_is_served_twice_as_fast() -> None:
    queue = FairQueue()
    queue.submit("heavy", "A", 40, weight=2.0)
    queue.submit("light", "B", 40)
    assert queue.deadlines() == {"heavy": 20, "light": 40}


def test_a_wrong_estimate_is_corrected() -> None:
    queue = FairQueue()
    queue.submit("a", "A", 10)
    queue.submit("b", "A", 20)
    queue.correct("a", "A", 30)
    assert queue.deadlines() == {"b": 20, "a": 50}


def test_the_queue_survives_its_memory() -> None:
    queue, ranks = virtual_deadlines(EXAMPLE, 4)
    again = FairQueue.from_memory(json.loads(json.dumps(queue.as_memory())))
    again.advance(30, 4)
    queue.advance(30, 4)
    assert again.deadlines() == queue.deadlines() == pytest.approx({str(n): end for n, end in ranks.items()})


def test_the_user_with_one_small_job_passes_the_one_with_many() -> None:
    long = option(gpus=1, duration_s=1000)
    jobs = [job(f"a{i}", long, user="A") for i in range(3)]
    plan = decide("uwfq-whole", [*jobs, job("b", long, at=5, user="B")], [node("n", 2)], now=5.0)
    assert {name for name, action in plan.items() if isinstance(action, Start)} == {"a0", "b"}


@pytest.mark.parametrize(
    ("ran", "restart", "stopped"),
    [(899.0, 0.0, False), (901.0, 0.0, True), (1000.0, 0.0, False), (901.0, 90.0, False)],
)
def test_gpus_change_hands_only_at_the_end_of_a_segment_and_if_a_restart_is_cheap(
    ran: float, restart: float, stopped: bool
) -> None:
    long = option(gpus=1, duration_s=1e5)
    holder = running("long", long, ("n", 0), since=-ran, at=-ran, user="A", restart_s=restart)
    plan = decide("uwfq", [holder, job("short", option(), user="B")], [node("n", 0, total=1)])
    assert isinstance(plan.get("long"), Preempt) == stopped


def test_the_reason_names_fairness() -> None:
    jobs = [job("a", option(gpus=2)), job("b", option(gpus=2), at=1, user="B")]
    state = ClusterState(jobs=tuple(jobs), nodes=(node("n", 1, total=2),))
    blocking = replace(WHOLE, rules=CycleOptions(blocks=HeadOfLine.MODELS))
    waits = {wait.job: wait for wait in blocking.decide(state, 1.0).actions if isinstance(wait, Wait)}
    assert (
        waits["b"].reason
        == "Needs 2 A100 GPUs; 1 is free. Users who received less than their share go first."
    )


def test_a_job_that_may_be_considered_only_now_comes_now_however_often_was_decided() -> None:
    first, later = job("a", option(), user="A"), job("b", option(), user="B")
    nodes = (node("n", 1),)
    seen_once = WHOLE.decide(ClusterState(jobs=(first,), nodes=nodes), 10.0)
    seen_twice = WHOLE.decide(ClusterState(jobs=(first,), nodes=nodes, memory=seen_once.memory), 40.0)
    both = [
        WHOLE.decide(ClusterState(jobs=(first, later), nodes=nodes, memory=plan.memory), 80.0).memory
        for plan in (seen_once, seen_twice)
    ]
    assert both[0] == both[1]
