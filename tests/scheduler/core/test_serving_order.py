"""The larger priority is served first, whatever the policy."""

from __future__ import annotations

import pytest

from scheduler.core.types import ClusterState, Start, Wait
from scheduler.simulator.baselines import SIMULATED
from scheduler.states import WaitState
from tests.scheduler.core.clusters import decide, job, node, option, running
from tests.scheduler.core.policies.crowds import crowd


@pytest.mark.parametrize("policy", SIMULATED)
def test_the_larger_priority_starts_first(policy: str) -> None:
    jobs = [
        job("early", option(), at=-20.0, user="u"),
        job("urgent", option(duration_s=1e4), priority=1, user="v"),
    ]
    found = decide(policy, jobs, [node("n", 1)])
    assert isinstance(found["urgent"], Start)
    assert isinstance(found["early"], Wait)


def test_easy_promises_gpus_to_the_largest_priority() -> None:
    holder = running("r", option(duration_s=100.0), ("n", 1))
    jobs = (holder, job("early", option(gpus=2), at=-20.0), job("urgent", option(gpus=2), priority=1))
    plan = SIMULATED["easy"].decide(ClusterState(jobs=jobs, nodes=(node("n", 1, total=2),)), 0.0)
    assert plan.memory["reservation"]["job"] == "urgent"


@pytest.mark.parametrize("policy", SIMULATED)
def test_those_that_wait_for_gpus_stand_by_class(policy: str) -> None:
    """So the queue shows them, and so borrowed GPUs return to them."""
    for seed in range(25):
        state = crowd(seed)
        priorities = {one.id: one.priority for one in state.jobs}
        waits = [
            priorities[action.job]
            for action in SIMULATED[policy].decide(state, 0.0).actions
            if isinstance(action, Wait) and action.code in (WaitState.BUSY, WaitState.BEHIND)
        ]
        assert waits == sorted(waits, reverse=True)
