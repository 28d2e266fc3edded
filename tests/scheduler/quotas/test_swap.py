"""A job of a higher class takes the place of one that counts against the same limit."""

from __future__ import annotations

from math import floor

import pytest
from hypothesis import given

from scheduler.core.limits import Quota, UserLimit
from scheduler.core.policies import POLICIES
from scheduler.core.quotas.admission import decide
from scheduler.core.stopping import StopReason
from scheduler.core.types import Action, ClusterState, Preempt, Start, Wait
from scheduler.states import WaitState
from tests.scheduler.core.test_properties import random_clusters
from tests.scheduler.quotas.test_admission import STOPS_OTHERS, decided, held, one
from tests.scheduler.quotas.test_every_policy import limited_clusters

FOUR = Quota(team="vision", gpu_model="A100", guaranteed=4, borrow_limit=0)


def stopped(actions: dict[str, Action]) -> set[str]:
    return {name for name, action in actions.items() if isinstance(action, Preempt)}


@pytest.mark.parametrize("policy", STOPS_OTHERS)
def test_a_team_at_its_limit_swaps_the_lowest_class_and_the_latest_start(policy: str) -> None:
    holders = [
        held("other", "speech", 4, 4, since=-100.0, priority=-1),  # in the way of nothing
        held("high", "vision", 2, 0, since=-200.0, priority=1),
        held("early", "vision", 1, 2, since=-3e5),
        held("late", "vision", 1, 3, since=-1e5),
    ]
    actions = decided([*holders, one("urgent", priority=2)], FOUR, policy=policy)
    assert isinstance(actions["urgent"], Start)
    assert len(stopped(actions)) == 1
    assert stopped(actions) < {"early", "late"}


def test_the_others_stay_that_need_not_go() -> None:
    holders = [
        held("large", "vision", 2, 0, since=-3e5),
        held("a", "vision", 1, 2, since=-2e5),
        held("b", "vision", 1, 3, since=-1e5),
    ]
    actions = decided([*holders, one("urgent", gpus=2, priority=2)], FOUR, policy="las")
    assert stopped(actions) == {"a", "b"}
    holders[0] = held("large", "vision", 2, 0, since=-1e3)
    actions = decided([*holders, one("urgent", gpus=2, priority=2)], FOUR, policy="gavel")
    assert stopped(actions) == {"large"}
    assert actions["large"] == Preempt("large", StopReason.LIMIT)


@pytest.mark.parametrize("policy", STOPS_OTHERS)
def test_equals_of_a_team_at_its_limit_do_not_take_turns(policy: str) -> None:
    holders = [held(f"h{i}", "vision", 2, 2 * i, since=-100.0) for i in range(2)]
    actions = decided([*holders, one("late", at=9.0)], FOUR, policy=policy)
    assert isinstance(actions["late"], Wait)
    assert actions["late"].code == WaitState.QUOTA_TEAM
    assert not stopped(actions)


def test_a_person_at_a_limit_swaps_too() -> None:
    mine, colleagues = held("mine", "vision", 1, 0, user="ada"), held("theirs", "vision", 1, 1, user="bob")
    limit = UserLimit(user="ada", running_jobs=1)
    urgent = one("urgent", user="ada", priority=2)
    actions = decided([mine, colleagues, urgent], policy="srtf", users=(limit,))
    assert stopped(actions) == {"mine"}
    assert isinstance(actions["urgent"], Start)


@pytest.mark.parametrize("kept", [{"preemptible": False}, {"since": -5.0}, {"priority": 2}])
def test_who_may_not_be_stopped_is_not_swapped(kept: dict[str, object]) -> None:
    holder = held("h", "vision", 4, 0, **kept)  # type: ignore[arg-type]
    actions = decided([holder, one("urgent", priority=2)], FOUR, policy="srtf")
    assert not stopped(actions)
    assert isinstance(actions["urgent"], Wait)


def test_policies_that_stop_nobody_swap_nobody() -> None:
    assert not stopped(decided([held("h", "vision", 4), one("urgent", priority=2)], FOUR, policy="easy"))


@pytest.mark.parametrize("name", STOPS_OTHERS)
@given(state=limited_clusters())
@random_clusters
def test_for_whom_jobs_are_stopped_beside_the_policys_order(name: str, state: ClusterState) -> None:
    """A swap needs a lower class of the same team or person; a guarantee never stops its own team's jobs."""
    plan = decide(POLICIES[name], state, 0.0)
    jobs = {job.id: job for job in state.jobs}
    starts = [jobs[action.job] for action in plan.actions if isinstance(action, Start)]
    for action in plan.actions:
        if not isinstance(action, Preempt):
            continue
        gone = jobs[action.job]
        if action.reason is StopReason.GUARANTEE:
            assert any(
                floor(job.priority) >= floor(gone.priority) and job.team != gone.team for job in starts
            )
        if action.reason is StopReason.LIMIT:
            assert any(
                job.priority > gone.priority and (job.team == gone.team != "" or job.user == gone.user)
                for job in starts
            )
