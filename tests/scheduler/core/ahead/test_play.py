"""A queue played ahead does what the policy, its limits and its calendar say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Interval
from scheduler.core.ahead import drivers
from scheduler.core.ahead.durations import Draws
from scheduler.core.ahead.play import Lived, QueuePlay
from scheduler.core.ahead.play_input import PastArrivals, PlayInput
from scheduler.core.limits import Limits, Quota, Window
from scheduler.core.market.types import NodeTerms
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, JobInfo, NodeInfo, Plan, Policy
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import RecordedTruth
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from tests.harness.environment import examples
from tests.scheduler.core.clusters import job, node, option, running


def sure(duration_s: float, gpus: int = 1, **more: Any) -> Any:
    """An option whose duration is certain."""
    made = option(gpus=gpus, duration_s=duration_s, **more)
    return replace(made, duration_s=Interval(duration_s, duration_s, duration_s))


def played(jobs: list[JobInfo], nodes: list[NodeInfo], policy: str = "fifo", **more: Any) -> dict[str, Lived]:
    state = ClusterState(jobs=tuple(jobs), nodes=tuple(nodes), **more.pop("state", {}))
    known = PlayInput(state=state, now=0.0, policy=POLICIES[policy], **more)
    return QueuePlay(known, Draws(), 0).run()


BUSY = running("r", sure(100), ("n0", 0), since=-40.0)
FULL = NodeInfo(id="n0", gpu_model="A100", total=1, free=())
ON = (("n0", 0),)


def test_a_job_starts_when_the_running_one_ends() -> None:
    assert played([BUSY, job("a", sure(30))], [FULL]) == {"a": Lived(60.0, 90.0, ON)}


def test_measured_time_left_counts_before_the_promise() -> None:
    lives = played([BUSY, job("a", sure(30))], [FULL], left={"r": Interval(10, 10, 10)})
    assert lives["a"] == Lived(10.0, 40.0, ON)


def test_begin_times_and_dependencies_are_kept() -> None:
    jobs = [
        job("a", sure(30), begins_at=500.0),
        job("b", sure(10), at=1.0, awaits=("a",)),
        job("c", sure(100), at=2.0),
    ]
    lives = played(jobs, [node("n0", 1)])
    assert lives == {"a": Lived(500.0, 530.0, ON), "b": Lived(530.0, 540.0, ON), "c": Lived(0.0, 100.0, ON)}


def test_a_job_comes_after_the_last_of_an_array_and_a_paused_one_keeps_it_waiting() -> None:
    members = [job(name, sure(seconds), array="x") for name, seconds in (("a", 10), ("b", 40))]
    last = job("c", sure(5), at=1.0, awaits=("x", "b"))
    lives = played([*members, last], [node("n0", 4)])
    assert [lives[name].start for name in "abc"] == [0.0, 0.0, 40.0]
    lives = played([*members, replace(last, awaits=("x", "paused"))], [node("n0", 4)])
    assert lives["c"] == Lived(None, None, ())


def test_an_array_starts_as_many_as_its_limit() -> None:
    jobs = [job(name, sure(10), array="x", array_limit=1) for name in "abc"]
    starts = {name: life.start for name, life in played(jobs, [node("n0", 4)]).items()}
    assert starts == {"a": 0.0, "b": 10.0, "c": 20.0}


def test_nothing_starts_into_a_window() -> None:
    window = Window(closes_at=50.0, ends_at=300.0, nodes=frozenset({"n0"}))
    fixed = job("a", sure(80), borrows=False, preemptible=False)
    assert played([fixed], [node("n0", 1)], state={"windows": (window,)})["a"].start == 300.0


def test_a_job_that_has_ended_before_a_window_is_not_stopped_by_it() -> None:
    window = Window(closes_at=50.0, ends_at=300.0, nodes=frozenset({"n0"}))
    jobs = [job("a", sure(40)), job("b", sure(80), at=1.0, borrows=False, preemptible=False)]
    lives = played(jobs, [node("n0", 1)], state={"windows": (window,)})
    assert (lives["a"], lives["b"].start) == (Lived(0.0, 40.0, ON), 300.0)


def test_a_team_waits_for_its_share() -> None:
    quotas = (Quota(team="t", guaranteed=1, borrow_limit=0),)
    jobs = [job("a", sure(70), team="t"), job("b", sure(70), at=1.0, team="t")]
    lives = played(jobs, [node("n0", 4)], state={"limits": Limits(quotas=quotas)})
    assert [lives["a"].start, lives["b"].start] == [0.0, 70.0]


def test_a_job_that_has_started_in_a_play_is_stopped_for_others() -> None:
    """As long as it waits, it cannot be: a snapshot says so."""
    waits = job("a", sure(90_000), preemptible=False)
    other = job("b", sure(50), at=1.0, preemptible=False, begins_at=8000.0)
    lives = played([waits, other], [node("n0", 1)], "las")
    assert lives["a"].start == 0.0
    assert lives["b"].start == pytest.approx(8000.0, rel=0.03)  # whole states are looked at so often
    never = played([replace(waits, borrows=False), other], [node("n0", 1)], "las")
    assert never["b"].start == pytest.approx(90_000.0, rel=0.03)


def test_held_jobs_and_those_that_fit_nowhere_have_no_start() -> None:
    jobs = [job("a", sure(10), held="An administrator holds it."), job("b", sure(10, gpus=8))]
    assert played(jobs, [node("n0", 1)]) == {}


def test_later_jobs_come_at_the_old_rate_where_they_may_pass() -> None:
    past = PastArrivals(
        begins_at=-1000.0, ends_at=0.0,
        jobs=tuple(job(f"p{number}", sure(40), at=-1000.0 + number * 50) for number in range(20)),
    )  # fmt: skip
    long = job("a", sure(2000))
    alone = played([BUSY, long], [FULL], "sjf")["a"].start
    passed = played([BUSY, long], [FULL], "sjf", past=past)["a"].start
    assert alone == 60.0
    assert passed is None or passed > 60.0
    assert played([BUSY, long], [FULL], "fifo", past=past)["a"].start == 60.0


def test_a_stopped_job_pays_for_its_restart() -> None:
    """SRTF stops the long job for the short one, which saves and starts anew."""
    held = running("r", sure(1000), ("n0", 0), since=-200.0, restart_s=20.0, work_left=0.8)
    lives = played([held, job("a", sure(50))], [FULL], "srtf", left={"r": Interval(800, 800, 800)})
    assert lives["a"] == Lived(0.0, 50.0, ON)


WORLDS = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from([1, 1, 2, 4]), st.integers(1, 300)),
    min_size=2,
    max_size=14,
)


@pytest.mark.parametrize("name", ["fifo", "sjf", "easy", "fifo-backfill", "srtf", "tiresias"])
@given(rows=WORLDS, at=st.integers(0, 300))
@settings(deadline=None, max_examples=examples(100))
def test_certain_durations_are_played_as_the_simulator_plays_them(
    name: str, rows: list[tuple[int, int, int]], at: int
) -> None:
    """From a state in the middle of a simulation on, without later jobs."""
    shown, engine = simulated([row for row in rows if row[0] <= at], POLICIES[name], float(at))
    if shown is None:
        return
    exact, drivers.WholeState.coarse = drivers.WholeState.coarse, 0.0
    try:
        lives = QueuePlay(shown, Draws(), 0).run()
    finally:
        drivers.WholeState.coarse = exact
    for job_id, life in lives.items():
        assert life.end == pytest.approx(engine.runs[job_id].finished)


@pytest.mark.parametrize("name", ["fifo", "sjf"])
@given(rows=st.lists(st.tuples(st.integers(0, 60), st.sampled_from([1, 1, 2]), st.booleans()), min_size=1))
@settings(deadline=None, max_examples=30)
def test_only_jobs_that_may_use_spot_nodes_are_foretold_to_start_there(
    name: str, rows: list[tuple[int, int, bool]]
) -> None:
    """A ranking that is kept plays as the whole state does."""
    jobs = [
        job(f"j{number:02}", sure(50 + number, gpus), at=float(-submit), spot=spot)
        for number, (submit, gpus, spot) in enumerate(rows)
    ]
    spot = NodeInfo(id="s0", gpu_model="A100", total=2, free=(0, 1), kind=NodeTerms.SPOT, market="east")
    state = ClusterState(jobs=(*jobs, BUSY), nodes=(replace(FULL, total=2, free=(1,)), spot))
    known = PlayInput(state=state, now=0.0, policy=POLICIES[name])
    kept = QueuePlay(known, Draws(), 0).run()
    exact, drivers.WholeState.coarse = drivers.WholeState.coarse, 0.0
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("scheduler.core.ahead.play.driver", drivers.WholeState)
            whole = QueuePlay(known, Draws(), 0).run()
    finally:
        drivers.WholeState.coarse = exact
    assert kept == whole
    never = {one.id for one in jobs if not one.spot}
    assert all(node != "s0" for name, life in kept.items() if name in never for node, _ in life.gpus)


def simulated(rows: list[tuple[int, int, int]], policy: Policy, at: float) -> tuple[PlayInput | None, Engine]:
    """The knowledge at a decision after some moment, and the world's end."""
    jobs = [
        TraceJob(job_id=f"j{number:02}", submit_s=float(submit), gpus=gpus, duration_s=float(duration))
        for number, (submit, gpus, duration) in enumerate(sorted(rows))
    ]
    shown: list[PlayInput] = []

    class Spy:
        def __getattr__(self, name: str) -> Any:
            return getattr(policy, name)

        def decide(self, state: ClusterState, now: float) -> Plan:
            if now >= at and not shown:
                left = {run.id: engine.runs[run.id].change_at() - now for run in state.running}
                known = ClusterState(
                    jobs=tuple(map(certain, state.jobs)), nodes=state.nodes, memory=state.memory
                )
                sure_of = {run: Interval(left_s, left_s, left_s) for run, left_s in left.items()}
                shown.append(PlayInput(state=known, now=now, policy=policy, left=sure_of))
            return policy.decide(state, now)

    cluster, truth = parse_cluster("gpu:2x4"), RecordedTruth()
    predictions = PredictionModel(Fidelity.ORACLE, truth, cluster)
    how = SimulationSettings(restart_s=7.0)
    engine = Engine(jobs, cluster, Spy(), truth, predictions, how)
    engine.run()
    return (shown[0] if shown else None), engine


def certain(one: JobInfo) -> JobInfo:
    """The job with options whose durations are certain."""
    options = tuple(replace(of, duration_s=Interval(*3 * [of.duration_s.value])) for of in one.options)
    return replace(one, options=options)
