"""Rules that bound the stops of every policy that the portal may run, with its parameters."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.cycle.ranked import Ranked
from scheduler.core.cycle.ranking import Ranking
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.gittins import Gittins
from scheduler.core.policies.parameters import parameters_of, with_parameters
from scheduler.core.policies.uwfq import Uwfq
from scheduler.core.remaining_work import remaining_gpu_s
from scheduler.core.stopping import StopReason
from scheduler.core.types import ClusterState, Preempt, Resize, Start
from tests.harness.environment import examples
from tests.scheduler.core.clusters import cluster_states
from tests.scheduler.core.policies.crowds import crowd, crowded_states
from tests.scheduler.core.test_properties import nobody_is_evicted_for_a_lower_priority, random_clusters
from tests.scheduler.simulator.worlds import job, play

LIMIT, MIN_RUN_S = 1, 60.0
ARRIVALS = st.lists(st.tuples(st.integers(0, 600), st.integers(1, 4), st.integers(20, 900)), max_size=12)
RANKED = Ranked | Gittins | Uwfq
STOPS = [name for name in LIVE if POLICIES[name].preempts]


def test_people_are_told_of_every_policy_whether_it_stops_jobs() -> None:
    stopping = {name for name in LIVE if re.search("stops|stopping", POLICIES[name].description.summary)}
    assert stopping == set(STOPS)


@pytest.mark.parametrize("name", [name for name in STOPS if name != "spot"])
def test_crowds_make_every_policy_stop_jobs(name: str) -> None:
    """Else the properties below would hold of nothing; `spot` stops jobs for quotas alone."""
    policy = with_parameters(POLICIES[name], {})
    plans = [policy.decide(crowd(seed), 0.0) for seed in range(40)]
    assert sum(any(isinstance(action, Preempt) for action in plan.actions) for plan in plans) >= 4


@pytest.mark.parametrize("name", STOPS)
@given(state=cluster_states() | crowded_states())
@random_clusters
def test_stops_are_bounded_and_hit_no_higher_class(name: str, state: ClusterState) -> None:
    """Of the running jobs every second one was stopped as often as may be."""
    jobs = [replace(job, preemptions=LIMIT * (number % 2)) for number, job in enumerate(state.jobs)]
    state = replace(state, jobs=tuple(jobs))
    given_names = {parameter.name for parameter in parameters_of(POLICIES[name])}
    values = {"limit": LIMIT, "min_run_s": MIN_RUN_S}
    live = with_parameters(POLICIES[name], {key: values[key] for key in values.keys() & given_names})
    plan = live.decide(state, 0.0)
    nobody_is_evicted_for_a_lower_priority(state, plan)
    by_id = {job.id: job for job in jobs}
    for action in plan.actions:
        if not isinstance(action, Preempt | Resize):
            continue
        one = by_id[action.job]
        assert one.holds
        assert one.preemptible
        if isinstance(action, Preempt):
            assert one.preemptions < LIMIT
            assert isinstance(action.reason, StopReason)  # monitors count by reasons
        if "min_run_s" in given_names:
            assert -one.holds.since >= MIN_RUN_S
    assert live.decide(replace(state, jobs=state.jobs[::-1]), 0.0).actions == plan.actions


def ranking_of(policy: Ranked | Gittins | Uwfq, state: ClusterState) -> Ranking:
    if isinstance(policy, Gittins):
        return policy.ranking(state, state.memory["ended"])
    if isinstance(policy, Uwfq):
        left = {job.id: remaining_gpu_s(job) for job in state.jobs}
        return policy.ranking(state, policy.queue(state, left, 0.0))
    return Ranking(state, lambda job: policy.key(job, 0.0), policy.rules)


@pytest.mark.parametrize("name", [name for name in STOPS if isinstance(POLICIES[name], RANKED)])
@given(state=cluster_states() | crowded_states(), ended=st.lists(st.floats(1.0, 1e5), max_size=6))
@random_clusters
def test_whoever_is_stopped_makes_room_for_a_job_that_ranks_strictly_better(
    name: str, state: ClusterState, ended: list[float]
) -> None:
    """The hysteresis favours those that run; none evicts within its cool-down.

    ended: the service of past jobs, by which Gittins ranks. Segments end all the time.
    """
    policy = with_parameters(POLICIES[name], {})
    assert isinstance(policy, RANKED)
    if isinstance(policy, Gittins):
        state = replace(state, memory={"seen": {}, "ended": ended})
    if isinstance(policy, Uwfq):
        policy = replace(policy, rules=replace(policy.rules, segment_s=400.0, boundary_s=400.0))
    plan, ranking = policy.decide(state, 0.0), ranking_of(policy, state)
    jobs = {job.id: job for job in state.jobs}
    for stop in (action for action in plan.actions if isinstance(action, Preempt)):
        victim = jobs[stop.job]
        assert policy.rules.evictable(victim, 0.0)
        assert victim.holds
        heirs = [
            jobs[action.job]
            for action in plan.actions
            if isinstance(action, Start | Resize) and set(action.gpus) & set(victim.holds.gpus)
        ]
        assert any(
            ranking.level(heir) < ranking.level(victim) and (heir.holds or policy.rules.may_evict(heir, 0.0))
            for heir in heirs
        )


@pytest.mark.parametrize("name", STOPS)
@given(arrivals=ARRIVALS)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
def test_preemptions_are_bounded_over_a_whole_trace_and_all_jobs_end(
    name: str, arrivals: list[tuple[int, int, int]]
) -> None:
    policy = with_parameters(POLICIES[name], {"limit": LIMIT})
    jobs = [job(f"j{n}", at, gpus=gpus, runs_s=runs_s) for n, (at, gpus, runs_s) in enumerate(arrivals)]
    runs = play(jobs, policy=policy, round_s=20.0, restart_s=5.0).runs
    assert all(run.finished is not None and run.preemptions <= LIMIT for run in runs.values())
