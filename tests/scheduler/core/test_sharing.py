"""Fair share and Gittins: their worked numbers and what they do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.ordering.decayed_use import HALF_LIFE_S, use_of
from scheduler.core.policies.fair_share import FAIR, in_turns
from scheduler.core.policies.gittins import GITTINS, Services
from scheduler.core.types import ClusterState, Preempt, Start
from tests.scheduler.core.clusters import decide, job, node, option, running

ONE = option(gpus=1)


def test_the_gittins_index_of_the_worked_example() -> None:
    services = Services([1, 1, 2, 4, 8, 16])
    assert services.index(0, 2) == pytest.approx(0.3)
    assert services.index(1, 2) == pytest.approx(0.1429, abs=1e-4)
    assert services.index(2, 2) == pytest.approx(0.1667, abs=1e-4)
    assert services.index(4, 2) == 0


def test_gittins_prefers_the_job_that_is_likely_to_end() -> None:
    """Gittins prefers a job of 3,000 GPU seconds to one of 20,000.

    Jobs end at 3,600 or at 36,000: the first is nearly done, the second is not.
    """
    ended = [3600.0] * 8 + [36000.0] * 2
    jobs = [job("near", ONE, attained_gpu_s=3000.0), job("far", ONE, attained_gpu_s=20000.0)]
    plan = decide("gittins", jobs, [node("n", 1)], ended=ended)
    assert isinstance(plan["near"], Start)
    fed = running("far", ONE, ("n", 0), attained_gpu_s=20000.0)
    assert isinstance(decide("gittins", [fed, jobs[0]], [node("n", 0, total=1)], ended=ended)["far"], Preempt)


def test_gittins_learns_the_service_of_jobs_that_are_gone() -> None:
    first = GITTINS.decide(
        ClusterState(jobs=(running("a", ONE, ("n", 0), attained_gpu_s=50.0),), nodes=()), 0.0
    )
    again = GITTINS.decide(ClusterState(jobs=(), nodes=(), memory=first.memory), 60.0)
    assert again.memory == {"seen": {}, "ended": [50.0]}


def test_users_take_turns_by_predicted_time_per_weight() -> None:
    jobs = [job(f"a{i}", ONE, user="A", weight=2.0) for i in range(3)]
    jobs += [job(f"b{i}", ONE, at=1, user="B") for i in range(2)]
    assert [found.id for found in in_turns(jobs, {})] == ["a0", "b0", "a1", "a2", "b1"]


def test_who_used_more_waits() -> None:
    jobs = [job("a", ONE, user="A"), job("b", ONE, at=1, user="B")]
    memory = {"at": 0.0, "used": {"user A": 500.0}, "held": {}}
    assert isinstance(decide("fair", jobs, [node("n", 1)], **memory)["b"], Start)


def test_use_is_charged_while_gpus_are_held_and_halves_in_a_week() -> None:
    memory = {"at": 0.0, "used": {"user A": 800.0}, "held": {"user B": 4}}
    assert FAIR.used(memory, 10.0) == pytest.approx({"user A": 800, "user B": 40}, rel=1e-4)
    assert FAIR.used({**memory, "held": {}}, HALF_LIFE_S) == pytest.approx({"user A": 400})


def test_use_in_parts_is_the_use_of_the_whole() -> None:
    whole = use_of(2, 1e6, ago_s=5e5)
    assert use_of(2, 4e5, ago_s=5e5) + use_of(2, 6e5, ago_s=9e5) == pytest.approx(whole)


def test_teams_take_turns_before_people_by_their_weights() -> None:
    """A team of two people gets no more than a person alone, and twice as much with twice the weight."""
    both = {"team": "t", "team_weight": 1.0}
    jobs = [job(f"{name}{n}", ONE, user=name, **both) for name in "AB" for n in range(2)]
    jobs += [job(f"c{n}", ONE, at=1, user="C") for n in range(4)]
    assert [found.user for found in in_turns(jobs, {})] == ["A", "C", "B", "C", "A", "C", "B", "C"]
    heavy = [replace(one, team_weight=2.0) if one.team else one for one in jobs]
    assert [found.user for found in in_turns(heavy, {})] == ["A", "C", "B", "A", "C", "B", "C", "C"]
    assert in_turns(jobs, {"team t": 1e9})[0].user == "C"
    assert in_turns(jobs, {"user A": 1e9, "user C": 1e9})[0].user == "B"


def test_what_starts_now_counts_from_now_on() -> None:
    state = ClusterState(jobs=(job("a", option(gpus=2), user="A"),), nodes=(node("n", 2),))
    plan = FAIR.decide(state, 5.0)
    assert plan.memory == {"at": 5.0, "used": {}, "held": {"user A": 2}}


def test_what_a_user_had_does_not_shrink_when_the_clock_is_set_back() -> None:
    """F14"""
    memory = {"at": 86_400.0, "used": {"user u": 10.0}, "held": {"user u": 1}}
    assert FAIR.used(memory, 0.0) == {"user u": 10.0}
    assert FAIR.used(memory, 86_401.0)["user u"] > 10.0
