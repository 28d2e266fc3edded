"""The option that each job prefers on each GPU model, looked for anew where anything changed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Goal, Option, all_priced
from scheduler.core.divide.bundles import ANY, movable, possible_options
from scheduler.core.divide.preferred import Preferred, preferred_options
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import ClusterState, JobInfo, NodeInfo
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


def test_a_job_is_looked_at_again_only_where_it_changed() -> None:
    jobs = [job("a", option(), option("L40S", 2)), job("b", option(gpus=4))]
    other = [replace(jobs[0], goal=Goal.CHEAPEST), replace(jobs[1], options=(option(gpus=2),))]
    both = (node("n", 4), node("m", 2, model="L40S"))
    known: dict[str, Preferred] = {}

    def looked_at(jobs: list[JobInfo], nodes: tuple[NodeInfo, ...]) -> set[str]:
        found = preferred_options(jobs, FreeGpus(nodes), ANY)
        new = {one for one in found if found[one] is not known.get(one)}
        known.update(found)
        return new

    assert looked_at(jobs, both) == {"a", "b"}
    assert looked_at(jobs, both) == set()
    assert looked_at(jobs, both[:1]) == {"a"}  # nothing of b went away with the L40S
    assert looked_at(other, both[:1]) == {"a", "b"}
    assert looked_at([], both[:1]) == set()
    assert looked_at(other, both[:1]) == {"a", "b"}  # jobs that are not asked for are forgotten
