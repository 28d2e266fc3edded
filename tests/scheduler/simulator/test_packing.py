"""Lucid's pairs of jobs that share GPUs.

The tests cover the choice of pairs, their pace, and the rest after one ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler.core.policies import POLICIES
from scheduler.simulator import cli
from scheduler.simulator.engine import Engine
from scheduler.simulator.errors import SimulatorError, TraceError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.packing import MeasuredPairs, Packing, StatedPairs, read_pairs
from scheduler.simulator.world.ground_truth import RecordedTruth
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from tests.scheduler.simulator.worlds import finishes, job

FRIENDS = MeasuredPairs({("p", "q"): 0.8, ("q", "p"): 1.0, ("p", "p"): 0.79})


def packed(jobs: list[TraceJob], cluster: str = "gpu:1x2", policy: str = "lucid", **more: object) -> Engine:
    pools, truth = parse_cluster(cluster), RecordedTruth()
    predictions = PredictionModel(Fidelity.ORACLE, truth, pools)
    pairs = more.pop("pairs", FRIENDS)
    capacity = more.pop("capacity", ())
    engine = Engine(jobs, pools, POLICIES[policy], truth, predictions, None, capacity, None, Packing(pairs))  # type: ignore[arg-type]
    engine.run()
    return engine


def test_two_jobs_share_gpus_at_the_pace_of_the_pair_and_the_other_ends_alone() -> None:
    host, guest = job("host", gpus=2, profile="p"), job("guest", 50, gpus=2, runs_s=40, profile="q")
    engine = packed([host, guest])
    # the guest runs at 1.0 from 50 to 90; the host has done 50 s of work by then 50 and 32 more, and needs 18
    assert finishes(engine) == pytest.approx({"guest": 90, "host": 50 + 40 + (100 - 50 - 40 * 0.8)})
    assert engine.packing is not None
    assert engine.packing.packed == 1
    assert engine.machines.free_gpus == 2


@pytest.mark.parametrize(
    ("why", "guest"),
    [
        ("slowed by more than a fifth", {"profile": "p"}),
        ("a pair that was not measured", {"profile": "r"}),
        ("another number of GPUs", {"profile": "q", "gpus": 1}),
        ("more than twice the host's priority value", {"profile": "q", "runs_s": 201}),
    ],
)
def test_others_wait_for_gpus_of_their_own(why: str, guest: dict[str, object]) -> None:
    late = job("guest", 0.001, **{"gpus": 2, "runs_s": 40, **guest})  # type: ignore[arg-type]
    engine = packed([job("host", gpus=2, profile="p"), late])
    assert engine.runs["guest"].first_start == pytest.approx(100), why


def test_no_third_job_joins_a_pair() -> None:
    jobs = [job("host", gpus=2, profile="p"), *(job(f"g{n}", 1 + n, gpus=2, profile="q") for n in range(2))]
    engine = packed(jobs)
    assert engine.runs["g0"].first_start == 1
    assert (engine.runs["g1"].first_start or 0) > 2


def test_free_gpus_come_before_sharing() -> None:
    engine = packed([job("host", gpus=2, profile="p"), job("guest", 1, gpus=2, profile="q")], "gpu:2x2")
    assert finishes(engine) == {"host": 100, "guest": 101}
    assert engine.packing is not None
    assert engine.packing.packed == 0


def test_a_failing_node_stops_both_and_frees_every_gpu_once() -> None:
    away = (CapacityChange(60, "gpu-1", 0), CapacityChange(70, "gpu-1", 1))
    jobs = [job("host", gpus=2, profile="p"), job("guest", 50, gpus=2, runs_s=100, profile="q")]
    engine = packed(jobs, capacity=away)
    assert engine.open == 0
    assert engine.machines.free_gpus == engine.machines.ready_gpus == 2


def test_where_nothing_was_measured_scores_are_drawn_once_for_each_seed() -> None:
    jobs = [job(f"j{number}") for number in range(40)]
    paces = [StatedPairs(1).pace(jobs[0], other) for other in jobs]
    assert paces == [StatedPairs(1).pace(jobs[0], other) for other in jobs]
    assert {StatedPairs(1).pace(one, other) for one in jobs for other in jobs} == {
        None,
        1.0,
        0.99,
        0.96,
        0.93,
    }


def test_packing_lowers_the_jct_of_a_crowded_cluster() -> None:
    jobs = [job(f"j{number:02}", 10 * number, gpus=2, runs_s=100) for number in range(20)]
    alone = Engine(jobs, pools := parse_cluster("gpu:1x2"), POLICIES["lucid"], truth := RecordedTruth(),
                   PredictionModel(Fidelity.ORACLE, truth, pools))  # fmt: skip
    alone.run()
    together = packed(jobs, pairs=StatedPairs())
    assert sum(end or 0 for end in finishes(together).values()) < sum(
        end or 0 for end in finishes(alone).values()
    )


@pytest.mark.parametrize("policy", ["srtf", "easy"])
def test_a_policy_that_stops_jobs_or_counts_on_their_ends_does_not_pack(policy: str) -> None:
    with pytest.raises(SimulatorError, match=f"--packing: {policy} does not pack"):
        packed([job("a")], policy=policy)


@dataclass(frozen=True)
class Bad:
    rows: str
    says: str


@pytest.mark.parametrize(
    "bad",
    [
        Bad("p,q,fast,1", "row 1: needs profile_a, profile_b, rate_a and rate_b"),
        Bad("p,q,1,1\np,r,0,1", "row 2.*rate_a is 0; give the share of the pace alone"),
    ],
)
def test_bad_pairs_name_their_row(bad: Bad) -> None:
    names = ("profile_a", "profile_b", "rate_a", "rate_b")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in bad.rows.splitlines()]
    with pytest.raises(TraceError, match=bad.says):
        read_pairs(rows)


def test_a_folder_brings_its_cluster_and_its_pairs(tmp_path: Path) -> None:
    files = {
        "jobs.csv": "job_id,submit_s,gpus,duration_s,profile\nhost,0,2,100,p\nguest,50,2,40,q\n",
        "pairs.csv": "profile_a,profile_b,rate_a,rate_b\np,q,0.8,1.0\n",
        "cluster.csv": "node,gpu_type,gpus,rack,price_per_h,spot\nn1,gpu,2,r1,3.0,0\nn2,gpu,1,r1,1.5,0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    options = ["--trace", str(tmp_path), "--policy", "lucid", "--packing", "--json", str(tmp_path / "o.json")]
    assert cli.main(options) == 0
    assert '"jct_mean_s": 74.0' in (tmp_path / "o.json").read_text()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("n1,gpu,two,,,", "cluster.csv, row 1: needs node, gpu_type and gpus"),
        ("n1,gpu,0,,,", "1 GPU or more"),
        ("n1,gpu,2,,,\nn1,gpu,2,,,", "row 2.*'n1' was named before"),
        ("n1,gpu,2,,1,\nn2,gpu,2,,2,", "a GPU model has one price|once for every size"),
        ("", "names no node"),
    ],
)
def test_a_bad_cluster_file_is_refused_by_row(
    rows: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,gpus,duration_s\na,0,1,10\n")
    (tmp_path / "cluster.csv").write_text(f"node,gpu_type,gpus,rack,price_per_h,spot\n{rows}\n")
    assert cli.main(["--trace", str(tmp_path), "--policy", "fifo", "--json", str(tmp_path / "o.json")]) == 2
    reported = capsys.readouterr().err
    assert re.search(says, reported), reported


def test_without_any_cluster_it_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,gpus,duration_s\na,0,1,10\n")
    assert cli.main(["--trace", str(tmp_path), "--policy", "fifo", "--json", str(tmp_path / "o.json")]) == 2
    assert "--cluster: is needed" in capsys.readouterr().err
