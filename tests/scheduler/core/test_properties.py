"""Properties that every policy of the table keeps."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.core.cycle.cycle import acceptable
from scheduler.core.decisions.faults import faults
from scheduler.core.placement.fit import FreeGpus, equal_shares
from scheduler.core.types import ClusterState, Plan, Preempt, Resize, Start, Wait
from scheduler.simulator.baselines import BASELINES, SIMULATED
from scheduler.states import WaitState
from tests.harness.environment import examples
from tests.scheduler.core.clusters import cluster_states
from tests.scheduler.core.policies.crowds import crowded_states

every_policy = pytest.mark.parametrize("name", sorted(SIMULATED))
random_clusters = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@every_policy
@given(state=cluster_states() | crowded_states())
@random_clusters
def test_every_policy_keeps_the_rules(name: str, state: ClusterState) -> None:
    plan = SIMULATED[name].decide(state, 0.0)
    assert faults(state, plan) == []
    no_gpu_has_two_holders_and_gangs_stay_whole(name, state, plan)
    every_waiting_job_gets_one_answer_and_running_ones_keep_their_rights(name, state, plan)
    nobody_is_evicted_for_a_lower_priority(state, plan)
    equal_inputs_give_equal_plans(name, state, plan)
    without_explanations_the_decision_is_the_same(name, state, plan)


@pytest.mark.parametrize(
    "name", ["fifo-backfill", "fair", "srtf", "las", "tiresias", "gittins", "uwfq", "uwfq-whole"]
)
@given(state=cluster_states() | crowded_states())
@random_clusters
def test_no_gpu_idles_while_a_job_that_fits_waits(name: str, state: ClusterState) -> None:
    """No GPU that is free after a plan fits a waiting job.

    Exempt are options beyond the policy's tolerance, and GPUs for which jobs ahead wait (other policies).
    """
    policy: Any = SIMULATED[name]
    plan = policy.decide(state, 0.0)
    back = {action.job for action in plan.actions if isinstance(action, Preempt | Resize)}
    free = FreeGpus(state.nodes)
    for job in state.jobs:
        if job.id in back and job.holds:
            free.give(job.holds.option, job.holds.gpus)
    for action in plan.actions:
        if isinstance(action, Start | Resize):
            free.take(action.option, action.gpus)
    waits = {action.job for action in plan.actions if isinstance(action, Wait)}
    for job in state.jobs:
        if job.id in waits and not job.hold:
            assert not any(free.place(option, job) for option in acceptable(job, free, policy.rules))


def available(state: ClusterState, plan: Plan) -> dict[tuple[str, int], str]:
    """Return the GPUs, with their models, on which a plan may start jobs.

    They belong to ready nodes and are free or taken back by the plan.
    """
    ready = {node.id: node for node in state.nodes if node.ready}
    free = {(node.id, index): node.gpu_model for node in ready.values() for index in node.free}
    back = {action.job for action in plan.actions if isinstance(action, Preempt | Resize)}
    for job in state.jobs:
        if job.id in back and job.holds:
            free |= {gpu: job.holds.option.gpu_model for gpu in job.holds.gpus if gpu[0] in ready}
    return free


def no_gpu_has_two_holders_and_gangs_stay_whole(name: str, state: ClusterState, plan: Plan) -> None:
    grants = [action for action in plan.actions if isinstance(action, Start | Resize)]
    given_away = Counter(gpu for action in grants for gpu in action.gpus)
    free = available(state, plan)
    jobs = {job.id: job for job in state.jobs}
    lacks = {(node.id, tuning) for node in state.nodes for tuning in node.cannot_train}
    assert set(given_away) <= set(free)
    assert max(given_away.values(), default=1) == 1
    for action in grants:
        assert len(action.gpus) == action.option.gpus
        assert {free[gpu] for gpu in action.gpus} == {action.option.gpu_model}
        assert action.option in jobs[action.job].options
        assert not lacks & {(node, action.option.config.tuning) for node, _ in action.gpus}
        assert jobs[action.job].only_node in (None, *{node for node, _ in action.gpus})
        assert not jobs[action.job].avoids & {node for node, _ in action.gpus}
        if name not in BASELINES:
            per_node = Counter(node for node, _ in action.gpus)
            assert sorted(per_node.values(), reverse=True) == list(equal_shares(action.option))


def every_waiting_job_gets_one_answer_and_running_ones_keep_their_rights(
    name: str, state: ClusterState, plan: Plan
) -> None:
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
            assert SIMULATED[name].preempts
            assert running[action.job].preemptible
        elif hold := waiting[action.job].hold:
            assert action == Wait(action.job, WaitState.OPTIONS, hold)


def nobody_is_evicted_for_a_lower_priority(state: ClusterState, plan: Plan) -> None:
    jobs = {job.id: job for job in state.jobs}
    granted = {
        gpu: jobs[action.job]
        for action in plan.actions
        if isinstance(action, Start | Resize)
        for gpu in action.gpus
    }
    victims = [jobs[action.job] for action in plan.actions if isinstance(action, Preempt)]
    assert not victims or granted
    for victim in victims:
        gpus = victim.holds.gpus if victim.holds else ()
        takers = [granted[gpu].priority for gpu in gpus if gpu in granted]
        # A lower class may have the rest of a gang's GPUs, of which a higher one needs some.
        assert not takers or max(takers) >= victim.priority


def equal_inputs_give_equal_plans(name: str, state: ClusterState, plan: Plan) -> None:
    turned = replace(state, jobs=state.jobs[::-1], nodes=state.nodes[::-1])
    again = SIMULATED[name].decide(turned, 0.0)
    assert again.actions == plan.actions
    assert json.loads(json.dumps(dict(plan.memory))) == dict(again.memory)


def without_explanations_the_decision_is_the_same(name: str, state: ClusterState, plan: Plan) -> None:
    silent = SIMULATED[name].decide(replace(state, explain=False), 0.0)
    assert silent.actions == tuple(action for action in plan.actions if not isinstance(action, Wait))
    assert silent.memory == plan.memory
