"""Jobs that were stopped as often as the policy's limit says, and what others are owed.

The limit holds for all that a policy does and for swaps; a guarantee goes before it, where nobody else will
do.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.limits import Quota
from scheduler.core.policies import POLICIES
from scheduler.core.policies.parameters import parameters_of, with_parameters
from scheduler.core.quotas.admission import decide
from scheduler.core.stopping import StopReason
from scheduler.core.types import Action, ClusterState, JobInfo, Policy, Preempt, Start, Wait
from tests.harness.environment import examples
from tests.scheduler.core import test_properties
from tests.scheduler.core.clusters import option
from tests.scheduler.quotas.test_admission import EIGHT, STOPS_OTHERS, held, one
from tests.scheduler.quotas.test_every_policy import limited_clusters

LIMIT = 2
BOUNDED = [name for name in STOPS_OTHERS if "limit" in {one.name for one in parameters_of(POLICIES[name])}]


def bounded(name: str) -> Policy:
    return with_parameters(POLICIES[name], {"limit": LIMIT})


def decided(name: str, jobs: list[JobInfo], *quotas: Quota) -> dict[str, Action]:
    state = ClusterState(jobs=tuple(jobs), nodes=(replace(EIGHT[0], free=()),))
    state = replace(state, limits=replace(state.limits, quotas=quotas))
    return {action.job: action for action in decide(bounded(name), state, 0.0).actions}


def stopped(actions: dict[str, Action]) -> set[str]:
    return {name for name, action in actions.items() if isinstance(action, Preempt)}


@pytest.mark.parametrize("name", BOUNDED)
def test_others_give_back_what_they_borrow_before_a_job_at_its_limit(name: str) -> None:
    often = held("often", "speech", 4, 0, since=-100.0, priority=-1, preemptions=LIMIT)
    seldom = held("seldom", "speech", 4, 4, since=-1e5, preemptions=LIMIT - 1)
    owed = Quota(team="vision", guaranteed=4)
    actions = decided(name, [often, seldom, one("mine", gpus=4)], owed)
    assert isinstance(actions["mine"], Start)
    assert stopped(actions) == {"seldom"}


@pytest.mark.parametrize("name", BOUNDED)
def test_a_smaller_option_of_the_owner_goes_before_a_stop_beyond_the_limit(name: str) -> None:
    often = held("often", "speech", 6, 0, preemptions=LIMIT)
    seldom = held("seldom", "speech", 2, 6)
    mine = replace(one("mine"), options=(option(gpus=4), option(gpus=2, duration_s=150.0)))
    assert stopped(decided(name, [often, seldom, mine], Quota(team="vision", guaranteed=4))) == {"seldom"}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_guaranteed_comes_back_whatever_the_limit(name: str) -> None:
    often = [held(f"often{n}", "speech", 4, 4 * n, preemptions=LIMIT + n) for n in range(2)]
    actions = decided(name, [*often, one("mine", gpus=4)], Quota(team="vision", guaranteed=4))
    assert isinstance(actions["mine"], Start)
    (gone,) = stopped(actions)
    assert actions[gone] == Preempt(gone, StopReason.GUARANTEE)


@pytest.mark.parametrize("name", BOUNDED)
def test_nobody_swaps_with_a_job_at_its_limit(name: str) -> None:
    full = Quota(team="vision", guaranteed=4, borrow_limit=0)
    holders = [held(f"h{n}", "vision", 4, 4 * n, preemptions=LIMIT) for n in range(2)]
    actions = decided(name, [*holders, one("urgent", priority=2)], full)
    assert isinstance(actions["urgent"], Wait)
    assert not stopped(actions)


@st.composite
def often_stopped(draw: st.DrawFn) -> ClusterState:
    state = draw(limited_clusters())
    jobs = (replace(job, preemptions=draw(st.integers(0, LIMIT + 1))) for job in state.jobs)
    return replace(state, jobs=tuple(jobs))


@pytest.mark.parametrize("name", BOUNDED)
@given(state=often_stopped())
@settings(test_properties.random_clusters, max_examples=examples(60))
def test_beyond_the_limit_jobs_are_stopped_for_a_guarantee_alone(name: str, state: ClusterState) -> None:
    """And then only where nothing else brings it: if they could never be stopped, fewer would start."""
    plan = decide(bounded(name), state, 0.0)
    at_limit = {job.id for job in state.jobs if job.preemptions >= LIMIT}
    beyond = [action for action in plan.actions if isinstance(action, Preempt) and action.job in at_limit]
    assert all(action.reason is StopReason.GUARANTEE for action in beyond)
    never = (replace(job, preemptible=job.preemptible and job.id not in at_limit) for job in state.jobs)
    without = decide(bounded(name), replace(state, jobs=tuple(never)), 0.0)
    starts = [{action.job for action in one.actions if isinstance(action, Start)} for one in (plan, without)]
    assert starts[1] != starts[0] if beyond else starts[1] == starts[0]
