"""Jobs without any prediction.

They overtake no other job, promise nothing, and are served all the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.types import Interval, Option, Source
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, NodeInfo, Start, Wait
from tests.scheduler.core.clusters import decide, job, node, option, running


def unknown(gpus: int = 1) -> Option:
    """As knowledge states it when a recommendation failed: values of 0."""
    nothing = Interval(0.0)
    return replace(
        option(gpus=gpus), source=Source.DEFAULT, tokens_per_second=nothing, duration_s=nothing, cost=nothing
    )


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_job_without_a_prediction_starts_where_nobody_else_waits(policy: str) -> None:
    found = decide(policy, [job("dark", unknown(), unknown(2))], [node("n", 2)])
    start = found["dark"]
    assert isinstance(start, Start)
    assert start.option.gpus == 1


@pytest.mark.parametrize("policy", ["sjf", "srtf", "lucid", "uwfq", "uwfq-whole", "edd", "mdd", "mddc"])
def test_it_does_not_overtake_jobs_whose_end_is_known(policy: str) -> None:
    found = decide(
        policy,
        [job("dark", unknown(), due_at=9.0), job("short", option(), at=1.0, due_at=10.0)],
        [node("n", 1)],
    )
    assert isinstance(found["short"], Start)
    assert isinstance(found["dark"], Wait)


def test_backfill_does_not_take_its_end_for_near() -> None:
    """EASY: the first waiting job was promised both GPUs at 100 s."""
    jobs = [
        running("r", option(duration_s=100.0), ("n", 1)),
        job("head", option(gpus=2)),
        job("dark", unknown(), at=1.0),
        job("brief", option(duration_s=50.0), at=2.0),
    ]
    found = decide("easy", jobs, [node("n", 1, 2)])
    assert isinstance(found["dark"], Wait)
    assert isinstance(found["brief"], Start)


def test_nothing_is_promised_on_the_end_of_a_job_that_nobody_knows() -> None:
    jobs = (running("r", unknown(), ("n", 1)), job("head", option(gpus=2)), job("brief", option(), at=2.0))
    plan = POLICIES["easy"].decide(ClusterState(jobs=jobs, nodes=(node("n", 1, 2),)), 0.0)
    assert plan.memory["reservation"]["at"] is None
    assert not [action for action in plan.actions if isinstance(action, Start)]


@pytest.mark.parametrize("policy", ["mdd", "mddc"])
def test_due_times_count_while_such_a_job_runs(policy: str) -> None:
    jobs = [
        running("r", unknown(), ("n", 1)),
        job("late", option(), due_at=1e6),
        job("soon", option(), at=1.0, due_at=150.0),
    ]
    assert isinstance(decide(policy, jobs, [node("n", 1, 2)])["soon"], Start)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_node_without_gpus_is_no_place(policy: str) -> None:
    empty = NodeInfo(id="n", gpu_model="A100", total=0, free=())
    assert isinstance(decide(policy, [job("a", option())], [empty])["a"], Wait)
