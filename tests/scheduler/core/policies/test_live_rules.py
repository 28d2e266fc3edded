"""Rules that bound the stops of every policy that the portal may run, with its parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import parameters_of, with_parameters
from scheduler.core.types import ClusterState, Preempt, Resize
from tests.scheduler.core.clusters import cluster_states
from tests.scheduler.core.test_properties import nobody_is_evicted_for_a_lower_priority, random_clusters

LIMIT, MIN_RUN_S = 1, 60.0
STOPS = [name for name in LIVE if POLICIES[name].preempts]


@pytest.mark.parametrize("name", STOPS)
@given(state=cluster_states())
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
        job = by_id[action.job]
        assert job.holds
        assert job.preemptible
        if isinstance(action, Preempt):
            assert job.preemptions < LIMIT
        if "min_run_s" in given_names:
            assert -job.holds.since >= MIN_RUN_S
    assert live.decide(replace(state, jobs=state.jobs[::-1]), 0.0).actions == plan.actions
