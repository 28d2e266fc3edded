"""Policies that divide a cluster stop nobody, and let nobody wait, beside idle GPUs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, JobInfo, NodeInfo, Plan, Preempt, Resize, Start, Wait
from tests.harness.environment import examples
from tests.scheduler.core.clusters import decide, job, node, option, running


def test_a_job_that_is_stopped_anyway_goes_to_idle_gpus_that_it_would_not_restart_for() -> None:
    """Sia counts three restarts against a place elsewhere, and would rather have it idle."""
    held = option(gpus=8, rate=9500.0)
    holder = running("old", held, *(("n0", index) for index in range(8)), at=-1000.0, since=-900.0)
    holder = replace(holder, options=(held, option("L40S", 2)), restart_s=300.0, restarts=2)
    newcomers = [job(name, option(gpus=4, rate=4000.0), option(gpus=8, rate=1000.0)) for name in "ab"]
    nodes = [node("n0", 0, total=8), node("n1", 2, model="L40S")]
    actions = decide("sia", [holder, *newcomers], nodes)
    assert {name for name, action in actions.items() if isinstance(action, Start)} == {"a", "b"}
    assert actions["old"] == Resize("old", holder.options[1], (("n1", 0), ("n1", 1)))


@pytest.mark.parametrize("policy", ["sia", "gavel"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_nobody_is_stopped_or_waits_beside_gpus_that_would_do(policy: str, seed: int) -> None:
    state = drawn(random.Random(seed))
    assert not list(left_out(state, POLICIES[policy].decide(state, 0.0)))


def left_out(state: ClusterState, plan: Plan) -> Iterator[str]:
    """The jobs that get nothing though one of their options fits what the plan leaves free."""
    free, jobs = FreeGpus(state.nodes), {one.id: one for one in state.jobs}
    for action in plan.actions:
        held = jobs[action.job].holds
        if isinstance(action, Preempt | Resize) and held:
            free.give(held.option, held.gpus)
    for action in plan.actions:
        if isinstance(action, Start | Resize):
            free.take(action.option, action.gpus)
    for action in plan.actions:
        own = jobs[action.job]
        if isinstance(action, Preempt | Wait) and any(free.place(one, own) for one in own.options):
            yield own.id


def drawn(rng: random.Random) -> ClusterState:
    """Nodes of two models, nearly full of jobs of one class that may grow, shrink or go elsewhere."""
    nodes: list[NodeInfo] = []
    jobs: list[JobInfo] = []
    for number in range(rng.randint(1, 4)):
        total, model, held = rng.choice([2, 3, 4, 8]), rng.choice("AB"), 0
        while held < total and rng.random() < 0.8:
            size = rng.randint(1, total - held)
            own = option(model, size, rate=rng.uniform(1, 3) * size ** rng.uniform(0.3, 1))
            gpus = [(f"n{number}", index) for index in range(held, held + size)]
            one = running(f"r{len(jobs)}", own, *gpus, at=len(jobs) - 1000.0, since=-900.0)
            options, restart_s = (own, *others(rng, 0)), rng.choice([0.0, 30.0, 300.0])
            jobs.append(replace(one, options=options, restart_s=restart_s, restarts=rng.randint(0, 2)))
            held += size
        machine = node(f"n{number}", 0, total=total, model=model)
        nodes.append(replace(machine, free=tuple(range(held, total))))
    jobs += [job(f"w{number}", *others(rng, 1), at=-number) for number in range(rng.randint(0, 5))]
    return ClusterState(jobs=tuple(jobs), nodes=tuple(nodes))


def others(rng: random.Random, least: int) -> list[Option]:
    sizes = rng.sample([1, 2, 3, 4, 8], rng.randint(least, 3))
    return [option(rng.choice("AB"), size, rate=rng.uniform(1, 3) * size**0.7) for size in sizes]
