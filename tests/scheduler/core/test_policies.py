"""Properties that every policy of the table keeps, and FIFO's own rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings

from knowledge.core.types import Goal
from scheduler.core.placement import place
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, Job, Node, Start, Wait
from tests.scheduler.core.clusters import cluster_states, option


def job(name: str, *options, at: float = 0.0, goal: Goal = Goal.FASTEST) -> Job:  # type: ignore[no-untyped-def]
    return Job(id=name, submitted_at=at, options=tuple(options), goal=goal)


def node(name: str, free: int, total: int | None = None, model: str = "A100") -> Node:
    return Node(id=name, gpu_model=model, total=total or free, free=tuple(range(free)))


def decide(jobs: list[Job], nodes: list[Node]) -> dict[str, Start | Wait]:
    plan = POLICIES["fifo"].decide(ClusterState(jobs=tuple(jobs), nodes=tuple(nodes)), 0.0)
    return {action.job: action for action in plan.actions}


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(state=cluster_states())
@settings(max_examples=150, deadline=None)
def test_no_policy_oversubscribes_splits_a_gang_or_forgets_a_job(name: str, state: ClusterState) -> None:
    plan = POLICIES[name].decide(state, 0.0)
    starts = [action for action in plan.actions if isinstance(action, Start)]
    given_away = Counter(gpu for action in starts for gpu in action.gpus)
    free = {(n.id, index): n for n in state.nodes if n.ready for index in n.free}
    assert set(given_away) <= set(free)
    assert max(given_away.values(), default=1) == 1
    jobs = {job.id: job for job in state.jobs}
    for action in starts:
        assert len(action.gpus) == action.option.gpus
        assert Counter(Counter(node_id for node_id, _ in action.gpus).values()) == {
            action.option.gpus // action.option.nodes: action.option.nodes
        }
        assert {free[gpu].gpu_model for gpu in action.gpus} == {action.option.gpu_model}
        assert action.option in jobs[action.job].options
        assert not jobs[action.job].hold
        assert jobs[action.job].only_node in (None, *{node_id for node_id, _ in action.gpus})
    assert sorted(action.job for action in plan.actions) == sorted(jobs)
    assert all(action.reason for action in plan.actions if isinstance(action, Wait))
    assert plan == POLICIES[name].decide(replace(state, jobs=state.jobs[::-1], nodes=state.nodes[::-1]), 0.0)


def test_jobs_start_in_the_order_of_their_arrival() -> None:
    one = option(gpus=1)
    plan = decide([job("late", one, at=2), job("early", one, at=1)], [node("n", 1)])
    assert isinstance(plan["early"], Start)
    assert isinstance(plan["late"], Wait)


def test_nobody_overtakes_a_gang_that_waits_for_the_same_gpus() -> None:
    plan = decide([job("gang", option(gpus=8)), job("small", option(gpus=1), at=1)], [node("n", 5, total=8)])
    assert isinstance(plan["gang"], Wait)
    assert plan["gang"].reason.startswith("Needs 8 A100 GPUs; 5 are free.")
    assert isinstance(plan["small"], Wait)
    assert plan["small"].code == "behind"


def test_a_job_for_other_gpus_passes() -> None:
    plan = decide(
        [job("gang", option(gpus=8)), job("other", option("L40S"), at=1)],
        [node("n", 5, total=8), node("m", 1, model="L40S")],
    )
    assert isinstance(plan["other"], Start)


def test_a_job_that_no_node_can_hold_blocks_nobody() -> None:
    plan = decide([job("huge", option(gpus=8, nodes=1)), job("small", option(), at=1)], [node("n", 4)])
    assert isinstance(plan["huge"], Wait)
    assert plan["huge"].code == "no-node"
    assert isinstance(plan["small"], Start)


def test_a_job_waits_for_its_best_option_rather_than_taking_one_a_quarter_worse() -> None:
    best, close, poor = option(gpus=4, duration_s=100), option(gpus=2, duration_s=124), option(duration_s=126)
    busy = [node("n", 2, total=4)]
    assert decide([job("a", best, close)], busy)["a"] == Start("a", close, (("n", 0), ("n", 1)))
    assert isinstance(decide([job("a", best, poor)], busy)["a"], Wait)


def test_best_fit_leaves_the_large_hole_for_the_large_gang() -> None:
    placed = place(option(gpus=2), [node("big", 8), node("small", 2), node("middle", 4)])
    assert placed == (("small", 0), ("small", 1))


def test_a_gang_over_two_nodes_takes_equal_shares_or_nothing() -> None:
    two_nodes = option(gpus=4, nodes=2)
    assert place(two_nodes, [node("a", 3), node("b", 1)]) is None
    placed = place(two_nodes, [node("a", 3), node("b", 2)])
    assert placed == (("b", 0), ("b", 1), ("a", 0), ("a", 1))
