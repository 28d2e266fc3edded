"""FIFO's own rules."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from knowledge.core.domain.types import Goal, Interval
from scheduler.core.types import Start, Wait
from tests.scheduler.core.clusters import decide, job, node, option

fifo = partial(decide, "fifo")


def test_jobs_start_in_the_order_of_their_arrival() -> None:
    one = option(gpus=1)
    plan = fifo([job("late", one, at=2), job("early", one, at=1)], [node("n", 1)])
    assert isinstance(plan["early"], Start)
    assert isinstance(plan["late"], Wait)


def test_nobody_overtakes_a_gang_that_waits_for_the_same_gpus() -> None:
    plan = fifo([job("gang", option(gpus=8)), job("small", option(gpus=1), at=1)], [node("n", 5, total=8)])
    assert isinstance(plan["gang"], Wait)
    assert plan["gang"].reason.startswith("Needs 8 A100 GPUs; 5 are free.")
    assert isinstance(plan["small"], Wait)
    assert plan["small"].code == "behind"


def test_a_job_for_other_gpus_passes() -> None:
    plan = fifo(
        [job("gang", option(gpus=8)), job("other", option("L40S"), at=1)],
        [node("n", 5, total=8), node("m", 1, model="L40S")],
    )
    assert isinstance(plan["other"], Start)


def test_a_job_that_no_node_can_hold_blocks_nobody() -> None:
    plan = fifo([job("huge", option(gpus=8, nodes=1)), job("small", option(), at=1)], [node("n", 4)])
    assert isinstance(plan["huge"], Wait)
    assert plan["huge"].code == "no-node"
    assert isinstance(plan["small"], Start)


def test_a_job_waits_for_its_best_option_rather_than_taking_one_more_than_twice_as_bad() -> None:
    best, close, poor = option(gpus=4, duration_s=100), option(gpus=2, duration_s=199), option(duration_s=201)
    busy = [node("n", 2, total=4)]
    assert fifo([job("a", best, close)], busy)["a"] == Start("a", close, (("n", 0), ("n", 1)))
    assert isinstance(fifo([job("a", best, poor)], busy)["a"], Wait)


@pytest.mark.parametrize("goal", [Goal.CHEAPEST, Goal.DEADLINE])
def test_a_job_that_counts_money_waits_rather_than_paying_a_quarter_more(goal: Goal) -> None:
    best = option(gpus=4)  # each option costs 1 in any currency
    close, dear = (replace(option(gpus=2), cost=Interval(cost)) for cost in (1.24, 1.26))
    busy = [node("n", 2, total=4)]
    assert isinstance(fifo([job("a", best, close, goal=goal)], busy)["a"], Start)
    assert isinstance(fifo([job("a", best, dear, goal=goal)], busy)["a"], Wait)
