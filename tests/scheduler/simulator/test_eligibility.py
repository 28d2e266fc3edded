"""The simulator keeps what jobs may have to wait for beside GPUs, by the rules of the live loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.core.limits import Window
from scheduler.core.policies import LIVE
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.importers.registry import load_trace
from scheduler.simulator.scenario import open_scenario, policy_named
from scheduler.simulator.world.ground_truth import GroundTruth, Throughput
from scheduler.simulator.world.predictions import Fidelity
from tests.scheduler.simulator.worlds import finishes, job, play


class _Fails(GroundTruth):
    """`bad` never runs; everything else takes its recorded time."""

    def pace(self, job, option, shares, done):  # type: ignore[no-untyped-def]
        return None if job.job_id == "bad" else Throughput(1 / job.duration_s)

    def fails_after_s(self, job, option):  # type: ignore[no-untyped-def]
        return 30.0


@pytest.mark.parametrize("policy", LIVE)
def test_a_job_begins_after_others_and_not_before_its_time(policy: str) -> None:
    jobs = [job("a"), job("b", after="a"), job("c", after_ended="a|b"), job("d", begin_s=50.0), job("e")]
    runs = play(jobs, policy=policy, round_s=10.0).runs
    assert {name: run.first_start for name, run in runs.items()} == {
        "a": 0.0, "b": 100.0, "c": 200.0, "d": 50.0, "e": 0.0,
    }  # fmt: skip


def test_what_comes_after_a_failed_job_is_cancelled_in_turn() -> None:
    jobs = [job("bad"), job("b", after="bad"), job("c", 90.0, after="b"), job("d", after_ended="bad")]
    engine = play(jobs, truth=_Fails(), level=Fidelity.DEFAULT)
    assert finishes(engine) == {"bad": None, "b": None, "c": None, "d": 130.0}
    assert engine.open == 0


def test_a_job_comes_after_whole_arrays_that_succeed_or_end() -> None:
    jobs = [
        job("a1", array="a"),
        job("a2", array="a", runs_s=150),
        job("bad", array="b"),
        job("b2", array="b"),
    ]
    after = [
        job("c", after="a"),
        job("d", after="a|b"),
        job("e", after_ended="b"),
        job("f", after_ended="b|a"),
    ]
    engine = play([*jobs, *after], truth=_Fails(), level=Fidelity.DEFAULT)
    starts = {name: run.first_start for name, run in engine.runs.items()}
    assert (starts["c"], starts["d"], starts["e"], starts["f"]) == (150.0, None, 100.0, 150.0)
    assert engine.open == 0


def test_jobs_that_the_trace_does_not_name_have_ended() -> None:
    assert finishes(play([job("a", after="gone")])) == {"a": 100.0}


def test_of_an_array_only_so_many_run_at_a_time() -> None:
    ends = finishes(play([job(f"a{n}", array="a", array_limit=2) for n in range(4)]))
    assert sorted(end or 0.0 for end in ends.values()) == [100.0, 100.0, 200.0, 200.0]


def test_a_window_stops_what_runs_and_admits_its_team_alone() -> None:
    window = Window(closes_at=50.0, ends_at=500.0, nodes=frozenset({"gpu-1"}), team="vision")
    jobs = [job("a"), job("b", 60.0, group="vision"), job("c", 460.0, runs_s=1000)]
    runs = play(jobs, "gpu:1x1", policy="fifo", windows=(window,)).runs
    assert runs["a"].first_start == 500.0, "it would not have ended before the window"
    assert (runs["b"].first_start, runs["b"].preemptions) == (60.0, 0)


def test_a_job_that_can_be_stopped_works_until_a_window_closes() -> None:
    window = Window(closes_at=200.0, ends_at=300.0, nodes=frozenset({"gpu-1"}))
    [run] = play([job("a", runs_s=1000)], "gpu:1x1", windows=(window,)).runs.values()
    assert (run.first_start, run.finished, run.restarts, run.preemptions) == (0.0, 1100.0, 1, 0)


def test_ends_are_heard_of_when_nodes_report() -> None:
    ends = finishes(play([job("a", runs_s=95), job("b", runs_s=100)], "gpu:1x1", report_s=20.0))
    assert ends == {"a": 100.0, "b": 200.0}


HEADER = "job_id,submit_s,gpus,duration_s,after,begin_s,array,array_limit\n"


def test_a_folder_tells_of_dependencies_and_windows(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(HEADER + "a,0,1,100,,,x,1\nb,0,1,100,a,150,,\nc,0,1,100,,,x,1\n")
    (tmp_path / "windows.csv").write_text("from_s,until_s,node,group\n300,400,gpu,\n")
    scenario = open_scenario(tmp_path, parse_cluster("gpu:1x4"))
    engine, _ = scenario.simulate(policy_named("fifo"), Fidelity.ORACLE)
    assert finishes(engine) == {"a": 100.0, "b": 250.0, "c": 200.0}
    (tmp_path / "windows.csv").write_text("from_s,until_s,node\n300,400,n7\n")
    with pytest.raises(SimulatorError, match="'n7' is no node or pool"):
        open_scenario(tmp_path, parse_cluster("gpu:1x4")).simulate(policy_named("fifo"), Fidelity.ORACLE)
    (tmp_path / "windows.csv").write_text("from_s,until_s,node\n400,300,gpu\n")
    with pytest.raises(SimulatorError, match=r"windows.csv, row 1: .* until_s 300"):
        open_scenario(tmp_path, parse_cluster("gpu:1x4"))


def test_jobs_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + "a,0,1,100,b,,,\nb,0,1,100,a,,,\n")
    with pytest.raises(SimulatorError, match=r"wait for each other: . after . after ."):
        load_trace(path)
    path.write_text(HEADER + "a,0,1,100,,,x,\nb,0,1,100,x,,x,\n")
    with pytest.raises(SimulatorError, match=r"wait for each other: . after . after ."):
        load_trace(path)
