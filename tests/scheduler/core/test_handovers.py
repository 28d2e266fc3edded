"""Plans taken apart into jobs that take GPUs, and the jobs that are stopped for each."""

from __future__ import annotations

import pytest
from hypothesis import given

from scheduler.core.handovers import Handover, Why, handovers
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.stopping import SENTENCES, StopReason
from scheduler.core.types import ClusterState, Plan, Preempt, Resize, Start
from tests.scheduler.core.clusters import cluster_states, job, node, option, running
from tests.scheduler.core.test_properties import random_clusters

ONE, TWO = option(gpus=1), option(gpus=2)
RANKING = {name for name, policy in POLICIES.items() if policy.preempts} - {"sia", "gavel"}
STATE = ClusterState(
    jobs=(running("a", TWO, ("n", 0), ("n", 1)), running("b", ONE, ("n", 2)), job("c", ONE), job("d", ONE)),
    nodes=(node("n", 0, total=3), node("m", 2)),
)


def of(*actions: Start | Preempt | Resize) -> dict[str, Handover]:
    found, idle = handovers(STATE, Plan(actions))
    assert not idle
    return {change.takes.job: change for group in found for change in group}


def test_a_victim_leaves_for_the_first_job_that_takes_one_of_its_gpus() -> None:
    changes = of(Preempt("a", StopReason.RANK), Start("c", ONE, (("n", 1),)), Start("d", ONE, (("n", 0),)))
    assert changes["c"].victims == {"a": Why(StopReason.RANK, SENTENCES[StopReason.RANK])}
    assert (changes["d"].victims, changes["d"].held_by) == ({}, {"a"})


def test_a_start_on_free_gpus_stops_nobody() -> None:
    change = of(Start("c", ONE, (("m", 0),)))["c"]
    assert (change.held_by, change.victims, change.moves) == (set(), {}, False)


def test_a_moved_victim_moves_only_if_it_was_stopped() -> None:
    changes = of(Start("c", ONE, (("n", 1),)), Resize("a", TWO, (("m", 0), ("m", 1))))
    assert set(changes["c"].victims) == {"a"}
    assert (changes["a"].moves, changes["a"].evicted) == (True, True)


def test_one_who_moves_for_a_moved_victim_waits_for_both() -> None:
    a, b = Resize("a", TWO, (("n", 2), ("m", 0))), Resize("b", ONE, (("m", 1),))
    changes = of(Start("c", ONE, (("n", 1),)), a, b)
    assert set(changes["a"].victims) == {"b"}
    assert changes["b"].evicted


def test_jobs_that_change_places_stop_each_other() -> None:
    a, b = Resize("a", TWO, (("n", 2), ("m", 0))), Resize("b", ONE, (("n", 0),))
    changes = of(a, b)
    assert set(changes["a"].victims) == {"b"}
    assert set(changes["b"].victims) == {"a"}
    assert not changes["a"].evicted


def test_a_job_that_shrinks_for_one_that_grows_moves_after_it() -> None:
    """A job that is stopped for a move moves itself: it counts as moved, not as stopped for another."""
    grows = Resize("b", TWO, (("n", 1), ("n", 2)))
    groups, _ = handovers(STATE, Plan((Resize("a", ONE, (("n", 0),)), grows)))
    found = [change for group in groups for change in group]
    assert [change.takes.job for change in found] == ["b", "a"]
    assert (found[0].moving, found[0].evicted) == ({"a"}, False)
    assert (found[1].victims, found[1].evicted) == ({}, True)
    why = found[1].why
    assert why
    assert why.reason is StopReason.RESIZE
    assert "1 A100 GPU instead of 2 A100 GPUs" in why.said


def test_a_job_that_goes_on_with_gpus_alike_says_that_it_moves() -> None:
    assert of(Resize("b", ONE, (("m", 0),)))["b"].why == Why.of(StopReason.MOVE)


def test_jobs_that_take_what_the_victims_of_another_leave_stand_beside_it() -> None:
    """Others that take free GPUs do not; one that takes what two leave stands beside the later one."""
    stops = (Preempt("a", StopReason.RANK), Preempt("b", StopReason.RANK))
    on = {"c": ("n", 0), "d": ("m", 0), "e": ("n", 2), "f": ("n", 1), "g": ("m", 1)}
    starts = [Start(job, ONE, (gpu,)) for job, gpu in on.items()]
    groups, _ = handovers(STATE, Plan((*stops, *starts, Start("h", TWO, (("n", 0), ("n", 2))))))
    assert [[change.takes.job for change in group] for group in groups] == [
        ["c", "f"],
        ["d"],
        ["e", "h"],
        ["g"],
    ]


def test_a_job_that_has_already_what_it_is_given_is_left_alone() -> None:
    assert of(Resize("b", ONE, (("n", 2),))) == {}


def test_a_stop_from_which_nobody_gains_is_told_apart() -> None:
    stop = Preempt("a", StopReason.RANK)
    found, idle = handovers(STATE, Plan((stop,)))
    assert (list(found), idle) == ([], [stop])


@pytest.mark.parametrize("name", [name for name in LIVE if name in RANKING])
@given(state=cluster_states())
@random_clusters
def test_a_ranking_policy_stops_nobody_in_vain(name: str, state: ClusterState) -> None:
    """Each stop has one cause, of no lower priority, and whatever a job takes is free or left by a victim."""
    plan = POLICIES[name].decide(state, 0.0)
    groups, idle = handovers(state, plan)
    changes = [change for group in groups for change in group]
    assert not idle
    priority = {one.id: one.priority for one in state.jobs}
    stopped = [victim for change in changes for victim in change.victims]
    assert len(stopped) == len(set(stopped))
    preempted = {action.job for action in plan.actions if isinstance(action, Preempt | Resize)}
    assert set(stopped) == preempted
    for change in changes:
        assert change.held_by <= preempted
        assert all(priority[change.takes.job] >= priority[victim] for victim in change.victims)
        assert change.evicted == change.moves
