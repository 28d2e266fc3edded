"""Policies and limits that change, nodes that are drained, and jobs with the options that they really had."""

from __future__ import annotations

import pytest

from scheduler.core.limits import Limits, Quota
from scheduler.core.policies import POLICIES
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup, parse_cluster
from scheduler.simulator.inputs.trace import CapacityChange, Trace
from scheduler.simulator.scenario import Scenario
from scheduler.simulator.settings import Act, ActKind, RuleChange
from scheduler.simulator.world.past_options import PastOptions
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from tests.scheduler.core.clusters import option
from tests.scheduler.simulator.worlds import finishes, job, play


def test_another_policy_takes_over_with_its_rounds() -> None:
    jobs = [job("long", runs_s=300), job("b", 10, runs_s=200), job("c", 20, runs_s=50)]
    first = play(jobs, "gpu:1x1")
    assert finishes(first) == {"long": 300, "b": 500, "c": 550}
    change = RuleChange(at=100.0, policy=POLICIES["sjf"])
    assert finishes(play(jobs, "gpu:1x1", changes=(change,))) == {"long": 300, "b": 550, "c": 350}
    stops = play(jobs, "gpu:1x1", changes=(RuleChange(at=100.0, policy=POLICIES["srtf"]),))
    assert stops.runs["long"].preemptions == 1
    assert finishes(stops)["c"] == 150


def test_a_policy_without_rounds_is_asked_in_every_tick() -> None:
    jobs = [job("long", runs_s=1000), job("short", 10, runs_s=50)]
    policy = POLICIES["srtf"]
    assert play(jobs, "gpu:1x1", policy, round_s=0.0).runs["short"].first_start == 1000
    assert play(jobs, "gpu:1x1", policy, round_s=0.0, tick_s=20.0).runs["short"].first_start == 60.0


def test_other_limits_hold_from_then_on() -> None:
    none = Limits((Quota(team="a", borrow_limit=0), Quota(team="b", guaranteed=4)))
    open_again = RuleChange(at=70.0, limits=Limits())
    runs = play([job("j", group="a")], limits=none, changes=(open_again,)).runs
    assert runs["j"].first_start == 70.0


def test_people_hold_move_and_pause_jobs() -> None:
    def played(*acts: Act) -> dict[str, float | None]:
        jobs = [job("a", runs_s=100), job("b", 1, runs_s=100), job("c", 2, runs_s=100)]
        return finishes(play(jobs, "gpu:1x1", POLICIES["fifo"], acts=acts))

    hold, release = Act(50.0, "b", ActKind.HOLD), Act(150.0, "b", ActKind.RELEASE)
    assert played(hold, release) == {"a": 100, "c": 200, "b": 300}
    assert played(hold, Act(250.0, "b", ActKind.RELEASE)) == {"a": 100, "c": 200, "b": 350}
    front = Act(50.0, "c", ActKind.FRONT, 0.5)
    assert played(front) == {"a": 100, "c": 200, "b": 300}
    assert played(front, Act(60.0, "c", ActKind.BACK)) == {"a": 100, "b": 200, "c": 300}
    pause, resume = Act(40.0, "a", ActKind.PAUSE), Act(100.0, "a", ActKind.RESUME)
    assert played(pause, resume) == {"b": 140, "a": 200, "c": 300}
    assert played(pause, Act(150.0, "a", ActKind.RESUME)) == {"b": 140, "c": 240, "a": 300}
    waits = Act(50.0, "b", ActKind.PAUSE), Act(300.0, "b", ActKind.RESUME)
    assert played(*waits) == {"a": 100, "c": 200, "b": 400}
    assert played(Act(150.0, "a", ActKind.PAUSE), Act(1.0, "c", ActKind.HOLD))["a"] == 100


def test_a_drained_node_takes_no_more_jobs_and_a_lost_one_stops_them() -> None:
    def at(stops: bool) -> tuple[CapacityChange, ...]:
        return CapacityChange(50.0, "n2", 0, stops=stops), CapacityChange(300.0, "n2", 1)

    nodes = Cluster((NodeGroup("gpu", 2, 1, names=("n1", "n2")),))
    jobs = [job("a"), job("b"), job("c", 60.0)]
    drained = play(jobs, nodes, capacity=at(stops=False))
    assert finishes(drained) == {"a": 100, "b": 100, "c": 200}
    lost = play(jobs, nodes, capacity=at(stops=True))
    assert finishes(lost) == {"a": 100, "b": 150, "c": 250}
    assert {name for run in lost.runs.values() for name, _ in run.gpus} <= {"n1", "n2"}


ONE, FOUR = option("gpu", 1, duration_s=400.0), option("gpu", 4, duration_s=100.0)


def past(**known: PastOptions) -> Scenario:
    jobs = tuple(job(name, gpus=1, runs_s=800, gpu_type="gpu") for name in known)
    return Scenario(Trace(jobs=jobs, meta={"source": "own past"}), parse_cluster("gpu:1x4"), past=dict(known))


@pytest.mark.parametrize(("level", "told_s"), [(Fidelity.PERFORMANCE, 100.0), (Fidelity.ORACLE, 200.0)])
def test_jobs_choose_among_the_options_that_they_had(level: Fidelity, told_s: float) -> None:
    scenario = past(a=PastOptions((FOUR, ONE), slower=2.0))
    engine, _ = scenario.simulate(POLICIES["fifo"], level)
    assert finishes(engine) == {"a": 200.0}, "twice as long as promised"
    known = PredictionModel(level, scenario.truth(level), scenario.cluster, past=scenario.past)
    assert [one.duration_s.value for one in known.options(engine.runs["a"].job)] == [told_s, 4 * told_s]


def test_with_less_knowledge_they_keep_the_gpus_that_they_ran_on() -> None:
    engine, _ = past(a=PastOptions((FOUR, ONE), slower=2.0)).simulate(POLICIES["fifo"], Fidelity.EXACT)
    assert finishes(engine) == {"a": 800.0}


def test_what_ran_out_of_memory_does_so_again() -> None:
    scenario = past(a=PastOptions((FOUR, ONE), slower=1.0, failed={FOUR.key: 30.0}))
    engine, metrics = scenario.simulate(POLICIES["fifo"], Fidelity.PERFORMANCE)
    assert (engine.runs["a"].finished, metrics.failures) == (430.0, 1)
