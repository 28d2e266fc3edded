"""Quotas of teams and limits of people, whatever the policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.limits import Limits, Quota, UserLimit
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.quotas.admission import decide
from scheduler.core.types import Action, ClusterState, JobInfo, NodeInfo, Preempt, Start, Wait
from scheduler.states import WaitState
from tests.scheduler.core.clusters import job, node, option, running

EIGHT = (node("n", 8),)
STOPS_OTHERS = [name for name in LIVE if POLICIES[name].preempts]
OWED = Quota(team="vision", gpu_model="A100", guaranteed=4)


def decided(
    jobs: list[JobInfo],
    *quotas: Quota,
    policy: str = "fifo",
    nodes: tuple[NodeInfo, ...] = EIGHT,
    users: tuple[UserLimit, ...] = (),
) -> dict[str, Action]:
    taken = {gpu for job in jobs if job.holds for gpu in job.holds.gpus}
    left = (replace(node, free=tuple(i for i in node.free if (node.id, i) not in taken)) for node in nodes)
    state = ClusterState(jobs=tuple(jobs), nodes=tuple(left), limits=Limits(quotas, users))
    return {action.job: action for action in decide(POLICIES[policy], state, 0.0).actions}


def one(name: str, team: str = "vision", gpus: int = 1, **more: Any) -> JobInfo:
    return job(name, option(gpus=gpus), team=team, **more)


def held(name: str, team: str, gpus: int, first: int = 0, since: float = -1e6, **more: Any) -> JobInfo:
    at = tuple(("n", index) for index in range(first, first + gpus))
    return running(name, option(gpus=gpus), *at, since=since, team=team, **more)


def started(actions: dict[str, Action]) -> set[str]:
    return {name for name, action in actions.items() if isinstance(action, Start)}


def code(action: Action) -> WaitState:
    assert isinstance(action, Wait), action
    return action.code


@pytest.mark.parametrize("policy", LIVE)
def test_a_team_starts_no_more_than_it_is_owed_and_may_borrow(policy: str) -> None:
    limited = Quota(team="vision", gpu_model="A100", guaranteed=2, borrow_limit=1)
    actions = decided([one(f"j{i}", at=i) for i in range(5)], limited, policy=policy)
    assert len(started(actions)) == 3
    late = next(action for action in actions.values() if isinstance(action, Wait))
    assert late.code == WaitState.QUOTA_TEAM
    assert late.reason == (
        "Its team's jobs hold 3 A100 GPUs, and 2 are guaranteed. It needs 1, and the team may borrow at most"
        " 1."
    )


def test_the_order_within_a_team_is_the_policys() -> None:
    limited = Quota(team="vision", gpu_model="A100", guaranteed=1, borrow_limit=0)
    long, short = (job(name, option(duration_s=s), team="vision") for name, s in (("a", 900.0), ("b", 9.0)))
    assert started(decided([long, short], limited, policy="fifo")) == {"a"}
    assert started(decided([long, short], limited, policy="sjf")) == {"b"}


def test_idle_guaranteed_gpus_are_lent_to_others_and_not_while_they_are_asked_for() -> None:
    others = [one(f"o{i}", "speech") for i in range(8)]
    assert len(started(decided(others, OWED))) == 8
    plan = decided([*others, one("mine", at=9.0, gpus=4)], OWED)
    assert started(plan) == {"o0", "o1", "o2", "o3", "mine"}
    assert code(plan["o4"]) == WaitState.QUOTA_TEAM
    assert plan["o4"].reason.endswith("0 are idle that other teams do not need.")


def test_a_lending_limit_keeps_some_at_home() -> None:
    keeps = Quota(team="vision", gpu_model="A100", guaranteed=4, lending_limit=1)
    assert len(started(decided([one(f"o{i}", "") for i in range(8)], keeps))) == 5


def test_a_quota_over_all_models_counts_them_together() -> None:
    nodes = (node("a", 4), node("l", 4, model="L40S"))
    jobs = [job(f"j{i}", option("A100" if i % 2 else "L40S"), team="vision") for i in range(8)]
    assert len(started(decided(jobs, Quota(team="vision", guaranteed=3, borrow_limit=0), nodes=nodes))) == 3


def test_a_job_takes_the_option_that_fits_its_teams_share() -> None:
    small = job("j", option(gpus=4), option(gpus=2, duration_s=150.0), team="vision")
    limited = Quota(team="vision", gpu_model="A100", guaranteed=3, borrow_limit=0)
    start = decided([small], limited)["j"]
    assert isinstance(start, Start)
    assert start.option.gpus == 2


def test_a_job_over_its_teams_share_holds_up_nobody() -> None:
    limited = Quota(team="vision", gpu_model="A100", guaranteed=4, borrow_limit=0)
    actions = decided([one("big", gpus=8), one("other", "speech", gpus=8, at=1.0)], limited)
    assert code(actions["big"]) == WaitState.QUOTA_TEAM
    assert started(actions) == {"other"}


def test_a_job_that_may_not_be_stopped_borrows_nothing() -> None:
    jobs = [one("a", gpus=4, borrows=False), one("b", borrows=False), one("c")]
    actions = decided(jobs, OWED)
    assert started(actions) == {"a", "c"}
    assert "may not be stopped borrows none" in str(actions["b"])


USER_CASES = {
    "jobs": (UserLimit(user="ada", running_jobs=2), WaitState.QUOTA_USER, 2),
    "gpus": (UserLimit(user="ada", gpus=3), WaitState.QUOTA_USER, 3),
    "hours": (UserLimit(user="ada", gpu_s_left=450.0), WaitState.HOURS_USER, 4),
    "no hours": (UserLimit(user="ada", gpu_s_left=0.0), WaitState.HOURS_USER, 0),
}


@pytest.mark.parametrize("case", USER_CASES)
@pytest.mark.parametrize("policy", LIVE)
def test_a_persons_limits(policy: str, case: str) -> None:
    limit, waits, may = USER_CASES[case]
    jobs = [one(f"j{i}", user="ada", at=i) for i in range(6)] + [one("other", user="bob", at=9.0)]
    actions = decided(jobs, policy=policy, users=(limit,))
    begun = started(actions)
    assert "other" in begun
    assert len(begun) == may + 1
    assert {code(action) for name, action in actions.items() if name not in begun} == {waits}


@pytest.mark.parametrize(
    ("left_s", "told"),
    [
        (99.0, "It needs about 0.0278 GPU-hours, and of its owner's hours of this month 0.0275 are left."),
        (40.0, "It needs about 0.03 GPU-hours, and of its owner's hours of this month 0.01 are left."),
        (0.0, "None of its owner's GPU-hours of this month are left."),
        (-5.0, "None of its owner's GPU-hours of this month are left."),
    ],
)
def test_hours_that_are_needed_and_left_are_told_apart(left_s: float, told: str) -> None:
    """The job takes 100 s on one GPU."""
    actions = decided([one("j", user="ada")], users=(UserLimit(user="ada", gpu_s_left=left_s),))
    assert actions["j"] == Wait("j", WaitState.HOURS_USER, told)


@pytest.mark.parametrize("policy", STOPS_OTHERS)
def test_what_was_lent_is_taken_back_the_lowest_class_and_the_latest_first(policy: str) -> None:
    borrowed = [
        held("old", "speech", 2, 0, since=-3e5),
        held("important", "speech", 2, 2, since=-100.0, priority=1),
        held("new", "speech", 2, 4, since=-1e5),
        held("own", "vision", 2, 6, since=-1e5),
    ]
    speech = Quota(team="speech", gpu_model="A100", guaranteed=4)
    actions = decided([*borrowed, one("mine", gpus=2)], OWED, speech, policy=policy)
    assert isinstance(actions["mine"], Start)
    stopped = {name for name, action in actions.items() if isinstance(action, Preempt)}
    assert stopped == {"new"}


@pytest.mark.parametrize("policy", STOPS_OTHERS)
@pytest.mark.parametrize("explain", [True, False])
def test_the_urgent_one_of_two_owners_is_served_whether_reasons_are_asked_for_or_not(
    policy: str, explain: bool
) -> None:
    """Simulations ask for none."""
    lent = held("lent", "speech", 1, since=-1e5, attained_gpu_s=1e3)
    mine = [one("early", at=-9.0, due_at=9.0), one("urgent", at=-1.0, priority=2)]
    state = ClusterState(
        jobs=(lent, *mine),
        nodes=(replace(node("n", 1), free=()),),
        limits=Limits((replace(OWED, guaranteed=1),)),
        explain=explain,
    )
    plan = decide(POLICIES[policy], state, 0.0)
    assert started({action.job: action for action in plan.actions}) == {"urgent"}


def test_what_a_team_gives_back_is_kept_for_its_own_jobs() -> None:
    """A job of the team is stopped by rank, and another one of it waits for its place."""
    stopped = held("stopped", "speech", 4, attained_gpu_s=1e6)
    speech = Quota(team="speech", gpu_model="A100", guaranteed=2)
    vision = Quota(team="vision", gpu_model="A100", guaranteed=4, lending_limit=2)
    free = one("free", "", at=-9.0)
    own = one("own", "speech", gpus=2, at=-5.0, attained_gpu_s=10.0)
    actions = decided([stopped, free, own], speech, vision, policy="las", nodes=(node("n", 4),))
    assert (started(actions), code(actions["free"])) == ({"own"}, WaitState.QUOTA_TEAM)


def test_without_preemption_what_was_lent_comes_back_as_jobs_end() -> None:
    lent = [held(f"h{i}", "speech", 2, 2 * i) for i in range(4)]
    mine, theirs = one("mine", gpus=4, at=9.0), one("theirs", "speech", gpus=2)
    assert not started(decided([*lent, mine, theirs], OWED))
    actions = decided([*lent[:3], mine, theirs], OWED)
    assert not started(actions), "the first that end are kept for the owner"
    assert code(actions["theirs"]) == WaitState.QUOTA_TEAM
    assert "mine" in started(decided([*lent[:2], mine, theirs], OWED))


def test_a_higher_class_is_never_stopped_for_a_guarantee() -> None:
    lent = [held("h", "speech", 8, priority=1)]
    assert not started(decided([*lent, one("mine", gpus=4)], OWED, policy="srtf"))


def test_a_limit_that_is_lowered_stops_nobody() -> None:
    over = held("h", "vision", 6)
    limited = Quota(team="vision", gpu_model="A100", guaranteed=2, borrow_limit=0)
    actions = decided([over, one("j")], limited, policy="las")
    assert "h" not in actions
    assert code(actions["j"]) == WaitState.QUOTA_TEAM


ASKS_FOR_NOTHING = {
    "its owner's limit": {"user": "ada"},
    "no node that could hold it": {"gpus": 16},
    "only nodes that declined it": {"avoids": frozenset({"n"})},
}


@pytest.mark.parametrize("case", ASKS_FOR_NOTHING)
def test_nothing_is_kept_for_a_job_that_could_not_start_anyway(case: str) -> None:
    mine = one("mine", at=-9.0, **ASKS_FOR_NOTHING[case])  # type: ignore[arg-type]
    others = [one(f"o{i}", "speech") for i in range(8)]
    actions = decided([mine, *others], OWED, users=(UserLimit(user="ada", gpus=0),))
    assert len(started(actions)) == 8


def test_a_job_that_meets_a_limit_once_others_start_holds_up_nobody() -> None:
    """The gang waits for GPUs at first, then for its quota, as the first job holds what it was owed."""
    limited = Quota(team="vision", gpu_model="A100", guaranteed=4, borrow_limit=0)
    jobs = [one("a", gpus=2), one("gang", gpus=4, at=1.0), one("small", at=2.0)]
    nodes = (node("n", 3, 4),)
    actions = decided(jobs, limited, nodes=nodes)
    assert started(actions) == {"a", "small"}
    assert code(actions["gang"]) == WaitState.QUOTA_TEAM


def test_a_job_that_is_being_stopped_changes_no_reason_of_others() -> None:
    jobs = [one(f"o{i}", "speech", at=float(i)) for i in range(9)]
    leaves = one("leaves", "speech", hold="It is being stopped.")
    without = decided(jobs, OWED, policy="las")
    assert decided([*jobs, leaves], OWED, policy="las") == {**without, "leaves": decided([leaves])["leaves"]}


@pytest.mark.parametrize("policy", STOPS_OTHERS)
def test_no_borrower_takes_the_place_of_another_while_the_owner_waits(policy: str) -> None:
    """Idle GPUs of another model are within a guarantee over all, and are none to the owner's job.

    Its 60 s run from when it first waited; a borrower that takes the place of another would begin them anew.
    """
    two = (node("n", 4), node("l", 4, model="L40S"))
    old = {"since": -100.0, "attained_gpu_s": 50_000.0}
    young = {"since": -30.0, "attained_gpu_s": 20.0}
    borrowers = [held(f"b{n}", "b" if n < 2 else "c", 1, n, **(old if n % 2 else young)) for n in range(4)]
    owner = one("owner", gpus=4, at=-40.0, attained_gpu_s=1e6, first_started_at=-9e4, stopped_at=-40.0)
    others = [one("new", "d", at=-20.0), one("ended", "b", at=-20.0)]
    everything = Quota(team="vision", guaranteed=4)
    waiting = decided([*borrowers, owner, *others], everything, policy=policy, nodes=two)
    assert not started(waiting)
    assert not [action for action in waiting.values() if isinstance(action, Preempt)]
    freed = decided([*borrowers[:3], owner, *others], everything, policy=policy, nodes=two)
    assert not started(freed)
    elsewhere = one("elsewhere", "d", gpus=1)
    elsewhere = replace(elsewhere, options=(option(model="L40S"),))
    assert started(decided([*borrowers, owner, elsewhere], replace(everything, guaranteed=5), policy=policy,
                           nodes=(two[0], node("l", 8, model="L40S")))) == {"elsewhere"}  # fmt: skip
