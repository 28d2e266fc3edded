"""EASY backfill: the first waiting job is never delayed by those behind it."""

from __future__ import annotations

from functools import partial

from scheduler.core.policies.easy_backfill import EASY
from scheduler.core.types import ClusterState, Start, Wait
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
    assert first.memory["at"] == 100.0
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
