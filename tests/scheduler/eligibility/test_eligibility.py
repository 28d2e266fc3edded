"""Which jobs a policy is shown, beside a plain reference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.eligibility import eligible
from scheduler.core.types import ClusterState, JobInfo, NodeInfo
from scheduler.states import WaitState
from tests.scheduler.core.clusters import job, option, running

NOW = 1_000.0
NODES = (NodeInfo(id="n", gpu_model="A100", total=2, free=(0, 1)),)


def waiting(
    name: str, begins_at: float | None = None, awaits: tuple[str, ...] = (), hold: str = ""
) -> JobInfo:
    return job(name, option(), begins_at=begins_at, awaits=awaits, hold=hold)


def test_each_is_told_what_it_waits_for() -> None:
    jobs = (
        waiting("now"),
        waiting("late", begins_at=NOW + 60),
        waiting("past", begins_at=NOW),
        waiting("next", awaits=("a", "b", "c", "d", "e")),
        waiting("held", awaits=("a",), hold="Its options are computed."),
    )
    state, waits = eligible(ClusterState(jobs=jobs, nodes=NODES), NOW)
    assert [one.id for one in state.jobs] == ["now", "past", "held"]
    assert [(wait.job, wait.code) for wait in waits] == [
        ("late", WaitState.BEGIN_TIME),
        ("next", WaitState.DEPENDENCY),
    ]
    assert waits[0].reason == "It may not start before 1970-01-01T00:17:40+00:00."
    assert waits[1].reason == "It comes after a, b, c and 2 more."


moments = st.none() | st.floats(0, 2 * NOW)
orders = st.lists(st.tuples(moments, st.booleans()), max_size=6)


@given(orders=orders)
def test_a_plain_reference_shows_the_same_jobs(orders: list[tuple[float | None, bool]]) -> None:
    jobs = tuple(waiting(f"j{i}", at, ("x",) if after else ()) for i, (at, after) in enumerate(orders))
    may = [f"j{i}" for i, (at, after) in enumerate(orders) if not after and (at is None or at <= NOW)]
    state, waits = eligible(ClusterState(jobs=jobs, nodes=NODES), NOW)
    assert [one.id for one in state.jobs] == may
    assert {wait.job for wait in waits} == {one.id for one in jobs} - set(may)


members = st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.booleans(), st.booleans()), max_size=9)


@given(members=members, limit=st.integers(1, 3))
def test_no_more_of_an_array_are_shown_than_may_still_start(
    members: list[tuple[str, bool, bool]], limit: int
) -> None:
    """members: array, whether it runs, and whether it may not start yet."""
    jobs = tuple(
        running(f"j{i}", option(), ("n", i), array=array, array_limit=limit)
        if runs
        else job(f"j{i}", option(), array=array, array_limit=limit, begins_at=NOW + 1 if late else None)
        for i, (array, runs, late) in enumerate(members)
    )
    expected = {f"j{i}" for i, (array, runs, late) in enumerate(members) if runs or (not array and not late)}
    for name in "ab":
        of_it = [(i, runs, late) for i, (array, runs, late) in enumerate(members) if array == name]
        room = max(0, limit - sum(runs for _, runs, _ in of_it))
        expected |= {f"j{i}" for i, runs, late in of_it if not runs and not late} & {
            f"j{i}" for i in [i for i, runs, late in of_it if not runs and not late][:room]
        }
    state, waits = eligible(ClusterState(jobs=jobs, nodes=NODES), NOW)
    assert {one.id for one in state.jobs} == expected
    again, _ = eligible(ClusterState(jobs=jobs[::-1], nodes=NODES), NOW)
    assert {one.id for one in again.jobs} == expected, "whatever order they come in"
    codes = {wait.job: wait.code for wait in waits}
    assert all(
        codes[f"j{i}"] == WaitState.BEGIN_TIME
        for i, (_, runs, late) in enumerate(members)
        if late and not runs
    )
    assert set(codes) == {one.id for one in jobs} - expected


def test_what_runs_stays_whatever_it_was_to_wait_for() -> None:
    one = running("r", option(), ("n", 0), begins_at=NOW + 1, awaits=("x",))
    assert eligible(ClusterState(jobs=(one,), nodes=NODES), NOW)[0].jobs == (one,)
