"""Properties that every policy of the table keeps."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.core.placement import equal_shares
from scheduler.core.policies import FREE_PLACEMENT, POLICIES
from scheduler.core.types import ClusterState, Plan, Preempt, Resize, Start, Wait
from tests.scheduler.core.clusters import cluster_states

every_policy = pytest.mark.parametrize("name", sorted(POLICIES))
random_clusters = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@every_policy
@given(state=cluster_states())
@random_clusters
def test_no_gpu_has_two_holders_and_gangs_stay_whole(name: str, state: ClusterState) -> None:
    plan = POLICIES[name].decide(state, 0.0)
    grants = [action for action in plan.actions if isinstance(action, Start | Resize)]
    given_away = Counter(gpu for action in grants for gpu in action.gpus)
    free = available(state, plan)
    jobs = {job.id: job for job in state.jobs}
    assert set(given_away) <= set(free)
    assert max(given_away.values(), default=1) == 1
    for action in grants:
        assert len(action.gpus) == action.option.gpus
        assert {free[gpu] for gpu in action.gpus} == {action.option.gpu_model}
        assert action.option in jobs[action.job].options
        assert jobs[action.job].only_node in (None, *{node for node, _ in action.gpus})
        if name not in FREE_PLACEMENT:
            per_node = Counter(node for node, _ in action.gpus)
            assert sorted(per_node.values(), reverse=True) == list(equal_shares(action.option))


@every_policy
@given(state=cluster_states())
@random_clusters
def test_every_waiting_job_gets_one_answer_and_running_ones_keep_their_rights(
    name: str, state: ClusterState
) -> None:
    plan = POLICIES[name].decide(state, 0.0)
    answered = Counter(action.job for action in plan.actions)
    waiting = {job.id: job for job in state.jobs if job.holds is None}
    running = {job.id: job for job in state.jobs if job.holds}
    assert set(waiting) <= set(answered) <= set(waiting) | set(running)
    assert max(answered.values(), default=1) == 1
    for action in plan.actions:
        assert isinstance(action, Start | Wait if action.job in waiting else Preempt | Resize)
        if isinstance(action, Wait | Preempt):
            assert action.reason
        if action.job in running:
            assert POLICIES[name].preempts
            assert running[action.job].preemptible
        elif waiting[action.job].hold:
            assert isinstance(action, Wait)


@every_policy
@given(state=cluster_states())
@random_clusters
def test_nobody_is_evicted_for_a_lower_priority(name: str, state: ClusterState) -> None:
    plan = POLICIES[name].decide(state, 0.0)
    jobs = {job.id: job for job in state.jobs}
    victims = [jobs[action.job] for action in plan.actions if isinstance(action, Preempt)]
    gainers = [jobs[action.job] for action in plan.actions if isinstance(action, Start | Resize)]
    held = {(gpu, victim.id): victim for victim in victims if victim.holds for gpu in victim.holds.gpus}
    granted = {gpu: action.job for action in plan.actions if isinstance(action, Start) for gpu in action.gpus}
    for (gpu, _), victim in held.items():
        if gpu in granted:
            assert jobs[granted[gpu]].priority >= victim.priority
    assert not victims or gainers


@every_policy
@given(state=cluster_states())
@random_clusters
def test_equal_inputs_give_equal_plans_in_whatever_order(name: str, state: ClusterState) -> None:
    plan = POLICIES[name].decide(state, 0.0)
    turned = replace(state, jobs=state.jobs[::-1], nodes=state.nodes[::-1])
    again = POLICIES[name].decide(turned, 0.0)
    assert sorted(map(repr, plan.actions)) == sorted(map(repr, again.actions))
    assert json.loads(json.dumps(dict(plan.memory))) == dict(again.memory)


@every_policy
@given(state=cluster_states())
@random_clusters
def test_without_explanations_the_decision_is_the_same(name: str, state: ClusterState) -> None:
    told = POLICIES[name].decide(state, 0.0)
    silent = POLICIES[name].decide(replace(state, explain=False), 0.0)
    assert silent.actions == tuple(action for action in told.actions if not isinstance(action, Wait))
    assert silent.memory == told.memory


def available(state: ClusterState, plan: Plan) -> dict[tuple[str, int], str]:
    """GPU -> model, of the ready nodes' GPUs that are free or that the plan takes back."""
    ready = {node.id: node for node in state.nodes if node.ready}
    free = {(node.id, index): node.gpu_model for node in ready.values() for index in node.free}
    back = {action.job for action in plan.actions if isinstance(action, Preempt | Resize)}
    for job in state.jobs:
        if job.id in back and job.holds:
            free |= {gpu: job.holds.option.gpu_model for gpu in job.holds.gpus if gpu[0] in ready}
    return free
