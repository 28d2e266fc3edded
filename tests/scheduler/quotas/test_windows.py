"""Windows keep jobs off nodes, whatever the policy."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.core.decisions.decision_json import (
    PackedInput,
    PolicyInput,
    options_digest,
    pack_input,
    pack_options,
)
from scheduler.core.limits import Window
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.quotas.admission import decide
from scheduler.core.types import Action, ClusterState, JobInfo, NodeInfo, Resize, Start, Wait
from scheduler.states import WaitState
from tests.scheduler.core.clusters import job, node, option, running

HOUR_S = 3600.0
TWO = (node("a", 2), node("b", 2))


def window(*nodes: str, closes_at: float = HOUR_S, ends_at: float = 3 * HOUR_S, team: str = "") -> Window:
    return Window(closes_at=closes_at, ends_at=ends_at, nodes=frozenset(nodes), team=team, in_words="Closed.")


def decided(
    jobs: list[JobInfo], *windows: Window, policy: str = "fifo", nodes: tuple[NodeInfo, ...] = TWO,
    now: float = 0.0,
) -> dict[str, Action]:  # fmt: skip
    taken = {gpu for job in jobs if job.holds for gpu in job.holds.gpus}
    left = (replace(node, free=tuple(i for i in node.free if (node.id, i) not in taken)) for node in nodes)
    state = ClusterState(jobs=tuple(jobs), nodes=tuple(left), windows=windows)
    return {action.job: action for action in decide(POLICIES[policy], state, now).actions}


def places(actions: dict[str, Action]) -> dict[str, str]:
    return {name: action.gpus[0][0] for name, action in actions.items() if isinstance(action, Start | Resize)}


def long(name: str, seconds: float = 2 * HOUR_S, **more: object) -> JobInfo:
    return job(name, option(gpus=2, duration_s=seconds), **{"borrows": False, "preemptible": False, **more})


@pytest.mark.parametrize("policy", LIVE)
def test_a_job_that_cannot_be_stopped_starts_where_it_ends_before_the_window(policy: str) -> None:
    actions = decided([long("j")], window("a"), policy=policy)
    assert places(actions) == {"j": "b"}
    assert places(decided([long("short", 600.0)], window("a", "b"), policy=policy)).keys() == {"short"}


@pytest.mark.parametrize("policy", LIVE)
def test_a_job_that_fits_nowhere_before_the_window_waits_and_says_for_what(policy: str) -> None:
    actions = decided([long("j")], window("a", "b"), policy=policy)
    wait = actions["j"]
    assert isinstance(wait, Wait)
    assert wait.code == WaitState.WINDOW
    assert "Closed." in wait.reason


def test_a_job_that_can_be_stopped_works_until_shortly_before() -> None:
    movable = long("j", borrows=True, preemptible=True)
    assert places(decided([movable], window("a", "b"))).keys() == {"j"}
    assert places(decided([movable], window("a", "b"), now=HOUR_S - 30)) == {}


def test_the_upper_end_of_the_forecast_counts() -> None:
    near = option(gpus=2, duration_s=HOUR_S - 60)
    slow = replace(near, duration_s=replace(near.duration_s, high=HOUR_S + 60))
    fixed = {"borrows": False, "preemptible": False}
    assert places(decided([job("j", near, **fixed)], window("a", "b"))).keys() == {"j"}
    assert places(decided([job("j", slow, **fixed)], window("a", "b"))) == {}


def test_a_reservation_is_open_to_its_team_alone() -> None:
    jobs = [long("theirs", team="2"), long("ours", team="1", at=1.0)]
    assert places(decided(jobs, window("a", closes_at=0.0, team="1"))) == {"theirs": "b", "ours": "a"}
    nobody = long("mine")  # of no team: no reservation is for it
    assert places(decided([nobody], window("a", "b", closes_at=0.0, team="1"))) == {}


def test_a_window_that_is_over_closes_nothing() -> None:
    assert places(decided([long("j")], window("a", "b"), now=3 * HOUR_S)).keys() == {"j"}


def test_a_job_takes_the_option_that_ends_in_time() -> None:
    fast, slow = option(gpus=2, duration_s=1800.0), option(gpus=1, duration_s=3 * HOUR_S)
    both = job("j", slow, fast, borrows=False, preemptible=False)
    started = decided([both], window("a", "b"))["j"]
    assert isinstance(started, Start)
    assert started.option.gpus == 2


def test_a_running_job_keeps_what_it_holds_until_it_is_stopped() -> None:
    there = running("r", option(gpus=2, duration_s=9 * HOUR_S), ("a", 0), ("a", 1))
    assert "r" not in decided([there], window("a", closes_at=0.0))


@pytest.mark.parametrize("policy", LIVE)
def test_no_start_reaches_into_a_window(policy: str) -> None:
    """Random clusters against the rule in its plainest form."""
    for seed in range(12):
        rnd = Random(seed)
        nodes = tuple(node(name, rnd.choice([1, 2, 4])) for name in "abcd")
        windows = [
            window(
                *rnd.sample("abcd", rnd.randint(1, 3)), closes_at=rnd.uniform(-1, 2) * HOUR_S,
                team=rnd.choice(["", "1", "2"]),
            )
            for _ in range(rnd.randint(1, 3))
        ]  # fmt: skip
        jobs = [
            job(
                f"j{number}",
                *(option(gpus=gpus, duration_s=rnd.uniform(0.1, 4) * HOUR_S / gpus) for gpus in (1, 2)),
                team=rnd.choice(["", "1", "2"]), borrows=(stops := rnd.random() < 0.5), preemptible=stops,
                at=float(number),
            )
            for number in range(10)
        ]  # fmt: skip
        actions, known = decided(jobs, *windows, policy=policy, nodes=nodes), {one.id: one for one in jobs}
        for start in (action for action in actions.values() if isinstance(action, Start)):
            one, on = known[start.job], {at for at, _ in start.gpus}
            for w in windows:
                if not on & w.nodes or (w.team and w.team == one.team):
                    continue
                ends_before = start.option.duration_s.value <= w.closes_at
                assert w.closes_at > 0
                assert ends_before or one.borrows


def test_a_decision_keeps_its_windows() -> None:
    state = ClusterState(jobs=(long("j"),), nodes=TWO, windows=(window("a", team="1"),))
    packed = pack_options(state.jobs[0].options)
    kept = PackedInput(pack_input(PolicyInput(state, 5.0), {"j": options_digest(packed)}))
    assert kept.given({options_digest(packed): state.jobs[0].options}).state.windows == state.windows
