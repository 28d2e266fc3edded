"""A policy on probation, beside plain references of what it would do."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.policies import POLICIES
from scheduler.core.shadow.advance import advance
from scheduler.core.shadow.state import JobFacts, ShadowState, first_moment
from scheduler.core.shadow.state_json import pack_state, unpack_state
from scheduler.core.types import ClusterState, Holding, JobInfo
from tests.harness.environment import examples
from tests.scheduler.core import clusters

GPUS = 3
NODES = (clusters.node("n", GPUS),)
Arrivals = list[tuple[int, int]]  # (s until it comes, s that it takes)
ARRIVALS = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 300)), min_size=1, max_size=12)
LOOKS = st.lists(st.integers(1, 200), min_size=1, max_size=8)


def came(arrivals: Arrivals) -> list[JobInfo]:
    """A job on one GPU for each, at distinct moments."""
    order = sorted(enumerate(arrivals), key=lambda item: (item[1], item[0]))
    return [
        clusters.job(f"j{place:02}", clusters.option(duration_s=takes), at=at + place / 100)
        for place, (_, (at, takes)) in enumerate(order)
    ]


def reference(jobs: list[JobInfo], shortest: bool) -> dict[str, float]:
    """When each job starts on three GPUs, by arrival or shortest first; a queue in fifteen lines."""
    starts: dict[str, float] = {}
    coming, waiting, ends = list(jobs), list[JobInfo](), list[float]()
    while coming or waiting:
        now = min([job.submitted_at for job in coming[:1]] + (ends[:1] if waiting or not coming else []))
        while ends and ends[0] <= now:
            heappop(ends)
        while coming and coming[0].submitted_at <= now:
            waiting.append(coming.pop(0))
        while waiting and len(ends) < GPUS:
            takes = {job.id: job.options[0].duration_s.value for job in waiting}
            job = min(waiting, key=lambda job: (takes[job.id], job.submitted_at)) if shortest else waiting[0]
            waiting.remove(job)
            starts[job.id] = now
            heappush(ends, now + takes[job.id])
        if waiting and not coming and not ends:
            break
    return starts


def really(jobs: list[JobInfo], starts: dict[str, float], now: float) -> dict[str, JobFacts]:
    """The knowledge at a moment, if these are the true starts."""
    known: dict[str, JobFacts] = {}
    for job in jobs:
        start = starts[job.id]
        if job.submitted_at > now:
            continue
        if start + job.options[0].duration_s.value <= now:
            known[job.id] = JobFacts(ended=True, scale=1.0)
        elif start <= now:
            holds = Holding(option=job.options[0], gpus=(("n", 0),), since=start)
            known[job.id] = JobFacts(info=replace(job, holds=holds, first_started_at=start))
        else:
            known[job.id] = JobFacts(info=job)
    return known


def shadowed(policy: str, jobs: list[JobInfo], looks: list[int]) -> dict[str, float]:
    """When each job starts under a policy that is asked at these distances, kept as JSON in between."""
    world, now = first_moment(ClusterState(jobs=(), nodes=NODES), 0.0), 0.0
    starts: dict[str, float] = {}
    truth = reference(jobs, shortest=False)
    for pause in [*looks, *[100] * 40]:
        now += pause
        known = really(jobs, truth, now)
        missed = {job.id: JobFacts(info=job) for job in jobs if job.submitted_at <= now}  # came and went
        shown = {job: fact if job in world.lives else missed[job] for job, fact in known.items()}
        advance(world, shown, ClusterState(jobs=(), nodes=NODES), POLICIES[policy], now)
        starts |= {job: life.started_at for job, life in world.lives.items() if life.started_at is not None}
        world = unpack_state(pack_state(world))
    return starts


@settings(max_examples=examples(40), deadline=None)
@given(ARRIVALS, LOOKS)
def test_it_starts_what_a_plain_queue_would_start_whenever_it_is_asked(
    arrivals: Arrivals, looks: list[int]
) -> None:
    jobs = came(arrivals)
    assert shadowed("fifo", jobs, looks) == pytest.approx(reference(jobs, shortest=False))
    assert shadowed("sjf", jobs, looks) == pytest.approx(reference(jobs, shortest=True))


def ran(*jobs: JobInfo, until: float, policy: str = "fifo") -> ShadowState:
    """These jobs, from the moment 0 on."""
    world = first_moment(ClusterState(jobs=jobs, nodes=NODES), 0.0)
    state = ClusterState(jobs=jobs, nodes=NODES)
    advance(world, {job.id: JobFacts(info=job) for job in jobs}, state, POLICIES[policy], until)
    return world


def go_on(world: ShadowState, known: dict[str, JobFacts], to: float, policy: str = "fifo") -> None:
    advance(world, known, ClusterState(jobs=(), nodes=NODES), POLICIES[policy], to)


def test_what_runs_goes_on_and_ends_as_measured() -> None:
    held = clusters.option(gpus=3, duration_s=100.0)
    runs = clusters.running("r", held, *(("n", index) for index in range(3)), since=-50.0)
    assert runs.holds
    runs = replace(runs, work_left=0.5, holds=replace(runs.holds, left_s=50.0))
    waits = clusters.job("w", clusters.option(gpus=3, duration_s=10.0))
    world = ran(runs, waits, until=20.0)
    assert (world.lives["r"].ended_at, world.lives["w"].started_at) == (None, None)
    go_on(world, {"r": JobFacts(info=runs, scale=2.0), "w": JobFacts(info=waits)}, to=200.0)
    # At 20 s it had 30 s of the promise left, which really take 60.
    assert (world.lives["r"].ended_at, world.lives["w"].started_at) == (80.0, 80.0)
    assert world.lives["w"].ended_at == 90.0


def test_a_paused_job_leaves_its_gpus_and_comes_back_with_its_work() -> None:
    job = clusters.job("a", clusters.option(duration_s=100.0), restart_s=7.0)
    world = ran(job, until=40.0)
    go_on(world, {"a": JobFacts()}, to=50.0)
    assert (world.away, world.running) == ({"a"}, [])
    go_on(world, {"a": JobFacts(info=job)}, to=300.0)
    # It had done 40 of 100 s, pays its restart, and has 60 s to go.
    assert world.lives["a"].ended_at == 50.0 + 7.0 + 60.0
    assert world.stops == {"a": 1}


def test_a_cancelled_job_is_gone_and_what_came_after_it_may_start() -> None:
    first = clusters.job("a", clusters.option(duration_s=1000.0))
    second = clusters.job("b", clusters.option(duration_s=10.0), awaits=("a",))
    world = ran(first, second, until=20.0)
    assert world.lives["b"].started_at is None
    go_on(world, {"a": JobFacts(ended=True, cancelled=True), "b": JobFacts(info=second)}, to=40.0)
    assert set(world.lives) == {"b"}
    assert world.lives["b"].started_at is not None


def test_a_job_that_comes_after_an_array_starts_once_all_its_jobs_have_ended() -> None:
    first = clusters.job("a", clusters.option(duration_s=10.0), array="x")
    other = clusters.job("b", clusters.option(duration_s=1000.0), array="x")
    after = clusters.job("c", clusters.option(duration_s=10.0), awaits=("x",))
    world = ran(first, other, after, until=20.0)
    assert (world.lives["a"].ended_at, world.lives["c"].started_at) == (10.0, None)
    known = {one.id: JobFacts(info=one) for one in (first, after)}
    go_on(world, known | {"b": JobFacts(ended=True, cancelled=True)}, to=40.0)
    assert world.lives["c"].started_at is not None


def test_a_job_on_a_node_that_is_gone_waits_again() -> None:
    job = clusters.job("a", clusters.option(duration_s=1000.0))
    world = ran(job, until=20.0)
    advance(world, {"a": JobFacts(info=job)}, ClusterState(jobs=(), nodes=()), POLICIES["fifo"], 30.0)
    assert (world.running, world.stops) == ([], {"a": 1})


def test_a_policy_that_stops_jobs_does_so_in_the_shadow_alone() -> None:
    long = clusters.job("long", clusters.option(gpus=3, duration_s=5000.0))
    world = ran(long, until=600.0, policy="srtf")
    short = clusters.job("short", clusters.option(gpus=3, duration_s=50.0), at=601.0)
    known = {"long": JobFacts(info=long), "short": JobFacts(info=short)}
    for to in range(630, 1200, 30):
        go_on(world, known, to=float(to), policy="srtf")
    assert world.stops == {"long": 1}
    assert world.lives["short"].ended_at is not None
    assert world.lives["long"].info.holds is not None
