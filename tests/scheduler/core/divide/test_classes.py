"""Policies that divide a cluster let no lower class win.

GPUs are counted where wishes are made, so that the nodes may have no room for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Option
from scheduler.core.divide.rules import DivideRules
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, JobInfo, NodeInfo, Plan, Preempt, Resize, Start
from tests.harness.environment import examples
from tests.scheduler.core.clusters import by_qlora, decide, job, node, option, running

dividing = pytest.mark.parametrize("policy", ["sia", "gavel"])
RULES = DivideRules()


@dividing
@pytest.mark.parametrize("runs", [False, True])
def test_two_of_a_higher_class_take_the_only_two_places(policy: str, runs: bool) -> None:
    """Six GPUs are enough for three jobs of two; two nodes of three have places for two of them."""
    two = option(gpus=2)
    low = running("low", two, ("n0", 0), ("n0", 1), priority=-1) if runs else job("low", two, priority=-1)
    high = [job(name, two, at=at, priority=1) for name, at in (("a", 10.0), ("b", 20.0))]
    nodes = [replace(node("n0", 3), free=(2,) if runs else (0, 1, 2)), node("n1", 3)]
    actions = decide(policy, [low, *high], nodes)
    assert {name for name, action in actions.items() if isinstance(action, Start)} == {"a", "b"}
    assert isinstance(actions["low"], Preempt) == runs


def test_a_job_without_a_wish_takes_what_a_peer_could_not_use_before_a_lower_class() -> None:
    """Sia gives the four GPUs of `n0` to `peer`, where another keeps one of them."""
    stays = running("stays", option(), ("n0", 0), priority=-1, preemptible=False)
    peer = job("peer", option(gpus=3), option(gpus=4, rate=4000.0), at=-2.0)
    low = running("low", option(), ("n1", 0), priority=-1)
    jobs = [stays, peer, job("waits", option(), at=-1.0, avoids=frozenset({"n0"})), low]
    nodes = [replace(node("n0", 4), free=(1, 2, 3)), replace(node("n1", 1), free=())]
    actions = decide("sia", jobs, nodes)
    assert isinstance(actions["waits"], Start)
    assert isinstance(actions["peer"], Start)
    assert isinstance(actions["low"], Preempt)


def test_a_higher_class_moves_over_for_a_gang_of_the_next_one() -> None:
    """A node of one GPU is the best fit for a single GPU, and the only second node of the gang."""
    single = job("single", option(), priority=1)
    low = job("low", option(), at=-9.0, priority=-1, avoids=frozenset({"n0"}))
    actions = decide(
        "sia", [single, job("gang", option(gpus=2, nodes=2)), low], [node("n0", 4), node("n1", 1)]
    )
    assert {name for name, action in actions.items() if isinstance(action, Start)} == {"single", "gang"}


def test_a_wish_that_finds_no_place_does_not_move_jobs_to_and_fro() -> None:
    """Sia would give `grows` four GPUs of one node, where the gang over both leaves three."""
    grows = running("grows", option(gpus=2), ("n1", 0), ("n1", 2), at=-9.0, priority=1)
    grows = replace(grows, options=(option(gpus=2), option(gpus=4, rate=4000.0)))
    gang = running("gang", option(gpus=2, nodes=2), ("n1", 1), ("n0", 0), at=-8.0, priority=1)
    three = running("three", option(gpus=3), *(("n0", index) for index in (1, 2, 3)), at=-7.0, priority=1)
    low, waits = running("low", option(), ("n1", 3), at=-6.0), job("waits", option(), at=-5.0)
    nodes = [replace(node(name, 4), free=()) for name in ("n0", "n1")]
    actions = decide("sia", [grows, gang, three, low, waits], nodes)
    assert actions.keys() == {"waits"}


@dividing
def test_a_job_takes_another_option_of_its_bundle_where_the_first_finds_no_place(policy: str) -> None:
    """Sia and Gavel wish for one option of a bundle; `n0` alone can train it, and is half full."""
    stays = running("stays", option(), ("n0", 0), preemptible=False)
    nodes = [replace(node("n0", 2), free=(1,)), replace(node("n1", 2), cannot_train=frozenset({"qlora"}))]
    pair = job("pair", by_qlora(option(gpus=2)), option(gpus=2))
    assert isinstance(decide(policy, [stays, pair], nodes)["pair"], Start)


@dividing
# Where wishes of lower classes found places, and a job without a wish, or with another option, had none.
@example(seed=1284)
@example(seed=1435)
@example(seed=2380)
@example(seed=2560)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_no_job_waits_for_gpus_that_a_lower_class_holds(policy: str, seed: int) -> None:
    state = drawn(random.Random(seed))
    assert not list(beaten(state, POLICIES[policy].decide(state, 0.0)))


def beaten(state: ClusterState, plan: Plan) -> Iterator[str]:
    """The waiting jobs that would fit if no lower class held anything after the plan."""
    places = {one.id: (one.holds.option, one.holds.gpus) for one in state.jobs if one.holds}
    for action in plan.actions:
        if isinstance(action, Start | Resize):
            places[action.job] = (action.option, action.gpus)
        elif isinstance(action, Preempt):
            del places[action.job]
    for waits in state.jobs:
        free = FreeGpus(state.nodes)
        for one in state.jobs:
            if one.holds:
                free.give(one.holds.option, one.holds.gpus)
        lower = False
        for one in state.jobs:
            keeps = one.holds is not None and not RULES.movable(one, 0.0)
            if one.id in places and (one.priority >= waits.priority or keeps):
                free.take(*places[one.id])
            lower |= one.id in places and one.priority < waits.priority and not keeps
        if lower and waits.id not in places and any(free.place(option, waits) for option in waits.options):
            yield waits.id


def drawn(rng: random.Random) -> ClusterState:
    """A few nodes of odd sizes, with jobs of several classes that run on them or wait."""
    nodes: list[NodeInfo] = []
    jobs: list[JobInfo] = []
    for number in range(rng.randint(1, 4)):
        total, model = rng.randint(1, 4), rng.choice(["A100", "A100", "L40S"])
        rest = list(range(total))
        while rest and rng.random() < 0.6:
            size = rng.randint(1, len(rest))
            gpus, rest = tuple((f"n{number}", index) for index in rest[:size]), rest[size:]
            own = of(rng, model, size)
            one = running(f"r{len(jobs)}", own, *gpus, **common(rng), preemptible=rng.random() > 0.1)
            jobs.append(replace(one, options=(own, of(rng, model, 4)) if rng.random() < 0.5 else (own,)))
        lacks = frozenset({"qlora"} if rng.random() < 0.2 else ())
        nodes.append(replace(node(f"n{number}", total, model=model, cannot_train=lacks), free=tuple(rest)))
    for number in range(rng.randint(1, 5)):
        sizes = [(rng.randint(1, 4), rng.choice([1, 1, 1, 2])) for _ in range(rng.randint(1, 3))]
        own_options = [of(rng, rng.choice(["A100", "A100", "L40S"]), *size) for size in sizes]
        avoids = frozenset({"n0"} if rng.random() < 0.2 else ())
        jobs.append(job(f"j{number}", *own_options, avoids=avoids, **common(rng)))
    return ClusterState(jobs=tuple(jobs), nodes=tuple(nodes))


def of(rng: random.Random, model: str, each: int, nodes: int = 1) -> Option:
    gpus = each * nodes
    made = option(model, gpus, nodes, rate=1000.0 * gpus**0.8)
    return by_qlora(made) if rng.random() < 0.2 else made


def common(rng: random.Random) -> dict[str, Any]:
    return {"at": float(-rng.randint(0, 9999)), "priority": rng.choice([-1, 0, 1, 1.5])}
