"""No plan of any policy exceeds a limit.

This is counted by a plain loop over what it leaves.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.decisions.decision_json import PackedInput, PolicyInput, pack_input
from scheduler.core.decisions.faults import faults
from scheduler.core.limits import ALL_MODELS, Limits, Quota, UserLimit
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.quotas.admission import decide
from scheduler.core.types import Action, ClusterState, Plan, Preempt, Resize, Start, Wait
from tests.harness.environment import examples
from tests.scheduler.core import test_properties
from tests.scheduler.core.clusters import MODELS, cluster_states
from tests.scheduler.core.policies.crowds import crowded_states

TEAM = st.sampled_from(["", "a", "b"])
FEW = st.none() | st.integers(0, 4)


@st.composite
def limited_clusters(draw: st.DrawFn) -> ClusterState:
    state = draw(cluster_states())
    jobs = tuple(replace(job, team=draw(TEAM), borrows=not draw(rules_of_three)) for job in state.jobs)
    quotas = tuple(
        Quota(
            team=team, gpu_model=model, guaranteed=draw(st.integers(0, 8)),
            borrow_limit=draw(FEW), lending_limit=draw(FEW),
        )
        for team in ("a", "b")
        for model in (*MODELS, ALL_MODELS)
        if draw(st.booleans())
    )  # fmt: skip
    users = tuple(
        UserLimit(
            user=user, running_jobs=draw(FEW), gpus=draw(FEW), gpu_s_left=draw(st.none() | st.floats(0, 1e6))
        )
        for user in ("u", "v")
        if draw(st.booleans())
    )
    return replace(state, jobs=jobs, limits=Limits(quotas, users))


rules_of_three = st.sampled_from([False, False, True])


@pytest.mark.parametrize("name", LIVE)
@given(state=limited_clusters() | crowded_states(limits=True))
@settings(test_properties.random_clusters, max_examples=examples(20))
def test_no_start_exceeds_a_limit(name: str, state: ClusterState) -> None:
    plan = decide(POLICIES[name], state, 0.0)
    test_properties.no_gpu_has_two_holders_and_gangs_stay_whole(name, state, plan)
    test_properties.every_waiting_job_gets_one_answer_and_running_ones_keep_their_rights(name, state, plan)
    test_properties.nobody_is_evicted_for_a_lower_priority(in_whole_classes(state), plan)
    assert decide(POLICIES[name], state, 0.0) == plan
    assert faults(state, plan) == []
    silent = decide(POLICIES[name], replace(state, explain=False), 0.0)
    assert silent.actions == tuple(action for action in plan.actions if not isinstance(action, Wait))
    for action in plan.actions:
        if isinstance(action, Start):
            stays_within_its_teams_share(state, plan, action)
            stays_within_its_owners_limits(state, plan, action)


def in_whole_classes(state: ClusterState) -> ClusterState:
    """The same without places before a class, in spite of which an owner may reclaim its GPUs."""
    return replace(state, jobs=tuple(replace(job, priority=floor(job.priority)) for job in state.jobs))


@given(state=limited_clusters())
def test_the_record_keeps_all_limits(state: ClusterState) -> None:
    packed = PackedInput(pack_input(PolicyInput(state, 0.0), {job.id: job.id for job in state.jobs}))
    again = packed.given({job.id: job.options for job in state.jobs})
    assert (again.state.limits, again.state.jobs) == (state.limits, state.jobs)


def after(state: ClusterState, plan: Plan) -> dict[str, tuple[str, int]]:
    """The GPU model and number of GPUs of each job that runs after the plan."""
    acted: dict[str, Action] = {action.job: action for action in plan.actions}
    runs = {}
    for job in state.jobs:
        action = acted.get(job.id)
        if isinstance(action, Start | Resize):
            runs[job.id] = (action.option.gpu_model, action.option.gpus)
        elif job.holds and not isinstance(action, Preempt):
            runs[job.id] = (job.holds.option.gpu_model, len(job.holds.gpus))
    return runs


def stays_within_its_teams_share(state: ClusterState, plan: Plan, start: Start) -> None:
    jobs, runs = {job.id: job for job in state.jobs}, after(state, plan)
    job = jobs[start.job]
    for model in (start.option.gpu_model, ALL_MODELS):
        quotas = {quota.team: quota for quota in state.limits.quotas if quota.gpu_model == model}
        if not quotas:
            continue
        held = dict.fromkeys(("", "a", "b"), 0)
        for name, (used, gpus) in runs.items():
            held[jobs[name].team] += gpus if model in (used, ALL_MODELS) else 0
        own = quotas.get(job.team, Quota(team=job.team))
        borrows = held[job.team] - own.guaranteed
        if borrows <= 0:
            continue
        assert borrows <= (own.borrow_limit if own.borrow_limit is not None else borrows)
        all_gpus = sum(n.total for n in state.nodes if n.ready and model in (n.gpu_model, ALL_MODELS))
        kept = sum(
            max(0, quota.guaranteed - quota.lending_limit - held[quota.team])
            for quota in quotas.values()
            if quota.team != job.team and quota.lending_limit is not None
        )
        assert sum(held.values()) + kept <= all_gpus


def stays_within_its_owners_limits(state: ClusterState, plan: Plan, start: Start) -> None:
    jobs, runs = {job.id: job for job in state.jobs}, after(state, plan)
    user = jobs[start.job].user
    mine = {name: gpus for name, (_, gpus) in runs.items() if jobs[name].user == user}
    for limit in state.limits.users:
        if limit.user == user:
            assert limit.running_jobs is None or len(mine) <= limit.running_jobs
            assert limit.gpus is None or sum(mine.values()) <= limit.gpus
            assert limit.gpu_s_left is None or limit.gpu_s_left > 0
