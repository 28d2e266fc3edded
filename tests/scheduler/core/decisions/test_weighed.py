"""The options that were weighed for a job, as its owner sees them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from knowledge.core.domain.types import Goal
from scheduler.core.decisions.news import news, news_said
from scheduler.core.decisions.weighed import OptionVerdict, WeighedOption, weigh
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.stopping import StopReason
from scheduler.core.types import ClusterState, NodeInfo, Plan, Preempt, Resize, Start, Wait
from scheduler.states import WaitState
from tests.scheduler.core.clusters import cluster_states, job, node, option, running

ONE, TWO, FOUR = (option(gpus=count, duration_s=seconds) for count, seconds in ((1, 190), (2, 100), (4, 60)))
SLOW, OTHER = option(gpus=1, duration_s=500), option("L40S", gpus=1, duration_s=100)


def weighed(policy: str, state: ClusterState, name: str) -> dict[str, WeighedOption]:
    """By the options' bundles."""
    plan = POLICIES[policy].decide(state, 0.0)
    about = next(job for job in state.jobs if job.id == name)
    return {one.option.key: one for one in weigh(POLICIES[policy], about, state.nodes, plan, 0.0)}


def test_each_option_has_its_score_and_its_fate() -> None:
    state = ClusterState(
        jobs=(job("a", FOUR, TWO, ONE, OTHER), job("b", FOUR, TWO, at=1.0)),
        nodes=(node("n", 3, total=4), node("m", 1, model="L40S", ready=False)),
    )
    first, second = weighed("fifo-backfill", state, "a"), weighed("fifo-backfill", state, "b")
    assert {key: one.fate for key, one in first.items()} == {
        "A100:1x4": OptionVerdict.FULL,
        "A100:1x2": OptionVerdict.CHOSEN,
        "A100:1x1": OptionVerdict.WORSE,
        "L40S:1x1": OptionVerdict.NOWHERE,
    }
    assert [*first] == ["A100:1x4", "A100:1x2", "A100:1x1", "L40S:1x1"]  # the best first
    assert [one.score for one in first.values()] == [1.0, 100 / 60, 190 / 60, None]
    assert (first["A100:1x4"].free, first["A100:1x4"].lacks) == (3, 1)
    assert {key: (one.fate, one.lacks) for key, one in second.items()} == {
        "A100:1x4": (OptionVerdict.FULL, 3),  # one is left over by the first job
        "A100:1x2": (OptionVerdict.FULL, 1),
    }


def test_a_job_behind_others_could_have_had_what_it_was_not_given() -> None:
    state = ClusterState(jobs=(job("a", FOUR), job("b", ONE, at=1.0)), nodes=(node("n", 3, total=4),))
    assert weighed("fifo", state, "b")["A100:1x1"].fate is OptionVerdict.PASSED


def test_a_running_job_is_weighed_with_its_own_gpus() -> None:
    held = running("r", ONE, ("n", 0), goal=Goal.FASTEST)
    state = ClusterState(jobs=(replace(held, options=(TWO, ONE)),), nodes=(NodeInfo(
        id="n", gpu_model="A100", total=2, free=(1,)),))  # fmt: skip
    found = weighed("sia", state, "r")
    assert found["A100:1x2"].free == 2
    costs = [one.program_cost for one in found.values()]
    assert all(cost is not None for cost in costs)
    assert found["A100:1x1"].fate is OptionVerdict.PASSED


@given(state=cluster_states())
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_every_job_of_every_live_policy_can_be_explained(state: ClusterState) -> None:
    """Exactly the option that a job was given is the chosen one."""
    for name in LIVE:
        policy = with_parameters(POLICIES[name], {})
        plan = policy.decide(state, 0.0)
        given_to = {
            action.job: action.option for action in plan.actions if isinstance(action, Start | Resize)
        }
        for about in state.jobs:
            found = weigh(policy, about, state.nodes, plan, 0.0)
            chosen = {one.option for one in found if one.fate is OptionVerdict.CHOSEN}
            assert chosen == {given_to[about.id]} & set(about.options) if about.id in given_to else not chosen
            assert len(found) == len(about.options)


@pytest.mark.parametrize("facts", [{"w": ""}, {"w": "behind"}])
def test_news_are_what_changes_something_and_what_newly_blocks(facts: dict[str, str]) -> None:
    start, stop = Start("s", ONE, (("n", 0),)), Preempt("p", StopReason.RANK)
    wait, held = Wait("w", WaitState.BUSY, "Needs 1."), Wait("h", WaitState.OPTIONS, "not yet")
    plan = Plan((stop, start, wait, held))
    assert news(plan, {**facts, "h": ""}) == [stop, start, wait]
    assert news(plan, {"w": "busy", "h": ""}) == news(plan, {}) == [stop, start]
    assert news(Plan((wait,)), {"w": "busy"}) == []


def test_a_decision_that_is_made_again_says_the_same_until_the_job_ran() -> None:
    start = Start("s", ONE, (("n", 0),))
    state = ClusterState(jobs=(job("s", ONE),), nodes=())
    ran = replace(state, jobs=(job("s", ONE, restarts=1),))
    for known in ({}, {"s": "of the options"}):
        same = news_said([start], state, known)
        assert same == news_said([start], state, known) != news_said([start], ran, known)
        assert same != news_said([replace(start, gpus=(("n", 1),))], state, known)
    assert news_said([start], state, {"s": "of others"}) != same
    other = replace(start, option=replace(ONE, price_per_gpu_hour=7.0))
    assert news_said([other], state, {"s": "of the options"}) != same
