"""The option that each job prefers on each GPU model, looked for anew where anything changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Goal, Option, all_priced
from scheduler.core.divide import preferred
from scheduler.core.divide.bundles import ANY, movable, possible_options
from scheduler.core.divide.preferred import Preferred, preferred_options
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import ClusterState, JobInfo
from tests.scheduler.core.clusters import cluster_states, job, node, option


def reference(one: JobInfo, free: FreeGpus) -> Preferred:
    """Looked for without any memory."""
    best: dict[str, Option] = {}
    for found in possible_options(one, free):
        known = best.get(found.gpu_model)
        priced = all_priced(one.options)
        score = found.score(one.goal, priced=priced)
        if known is None or (score, found.gpus) <= (known.score(one.goal, priced=priced), known.gpus):
            best[found.gpu_model] = found
    rates = known_rates(list(best.values()))
    return Preferred(best, {model: rate / max(rates) for model, rate in zip(best, rates, strict=True)})


@given(states=st.lists(cluster_states(), min_size=2, max_size=3))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_what_is_remembered_is_what_would_be_found(states: list[ClusterState]) -> None:
    """Also if jobs and nodes of the same names are others, and when they come back."""
    for state in (*states, states[0]):
        jobs, free = movable(state.jobs, state.nodes, ANY, 0.0), FreeGpus(state.nodes)
        assert preferred_options(jobs, free, ANY) == {one.id: reference(one, free) for one in jobs}


def test_a_job_is_looked_at_again_only_where_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    find = preferred._preferred

    def counted(one: JobInfo, allowed: list[Option]) -> Preferred:
        looked.append(one.id)
        return find(one, allowed)

    monkeypatch.setattr(preferred, "_preferred", counted)
    jobs = [job("a", option(), option("L40S", 2)), job("b", option(gpus=4))]
    both = (node("n", 4), node("m", 2, model="L40S"))
    for of, nodes in ((jobs, both), (jobs, both), (jobs, both[:1])):
        preferred_options(of, FreeGpus(nodes), ANY)
    assert looked == ["a", "b", "a"]  # nothing of b went away with the L40S
    other = [replace(jobs[0], goal=Goal.CHEAPEST), replace(jobs[1], options=(option(gpus=2),))]
    preferred_options(other, FreeGpus(both[:1]), ANY)
    assert looked[3:] == ["a", "b"]
    preferred_options((), FreeGpus(both), ANY)
    assert not preferred._found
