"""Importers of traces.

The tests cover the detected format, the jobs made from its rows, and the refused rows with
their reasons.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scheduler.simulator.errors import ClusterError, SimulatorError, TraceError
from scheduler.simulator.inputs import files
from scheduler.simulator.inputs.cluster import as_text, parse_cluster
from scheduler.simulator.inputs.importers.registry import IMPORTERS, load_trace
from scheduler.simulator.inputs.trace import COLUMNS
from scheduler.simulator.scenario import open_scenario
from tests.scheduler.simulator.worlds import job, play

EXAMPLES = {
    "philly": ("job_id,submit_time,duration_s,gpus,vc", "p0,2017-09-04 10:30:41,60,8,7f04ca"),
    "venus": (
        "job_id,submit_time,duration_s,gpus,duration_capped,pred_ebm_s",
        "v0,2020-09-01 00:00:52,60,8,0,-12.5",
    ),
    "venus-bench": ("job_id,submit_s,duration_s,gpus,pred_lgb,pred_ebm", "765472,0,60,8,10326,629"),
    "helios": (
        "job_id,user,vc,node_num,gpu_num,state,submit_time,duration",
        "h0,u1,vc1,1,8,COMPLETED,2020-06-01T00:00:00+08:00,60",
    ),
    "openb": (
        "name,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        "pod-0,8,1000,V100M16|V100M32,LS,Running,0,70,10",
    ),
    "sia": ("name,time,application,num_replicas,batch_size", "cifar10-0,107,cifar10,8,2048"),
    "gavel-lists": (
        "trace,idx,job_type,total_steps,scale_factor,priority_weight,arrival_s",
        "all,0,ResNet-50 (batch size 64),2931,8,1.0,0",
    ),
    "gavel": (
        "vc,idx,job_type,total_steps,arrival_s,scale_factor",
        "0e4a51,0,LM (batch size 128),9512,0.0,8",
    ),
    "elasticflow": (
        "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration", "0,5,1,vgg,90,256,8,60",
    ),
    "tiresias": (
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval", "0,8,0,606,vgg19,60,30",
    ),
    "pai": ("job_id,submit_s,duration_s,gpus", "ali-1,0,60,8"),
    "foretune": ("job_id,submit_s,gpus,duration_s,gpu_type,profile,preemptible", "j,0,8,60,,,1"),
}  # fmt: skip


def write(folder: Path, *lines: str, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_every_importer_has_an_example() -> None:
    assert set(EXAMPLES) == {importer.name for importer in IMPORTERS}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_trace_is_told_by_its_columns(tmp_path: Path, name: str) -> None:
    trace = load_trace(write(tmp_path, *EXAMPLES[name]))
    assert trace.meta["source"] == name
    [job] = trace.jobs
    assert job.whole_gpus == 8
    assert job.duration_s == 60 or job.profile


def test_wall_clocks_count_from_the_first_job_and_rows_are_sorted(tmp_path: Path) -> None:
    rows = ("late,2017-09-04 11:00:00,60,1,a", "early,2017-09-04 10:00:00,60,1,a")
    trace = load_trace(write(tmp_path, EXAMPLES["philly"][0], *rows))
    assert [(job.job_id, job.submit_s) for job in trace.jobs] == [("early", 0.0), ("late", 3600.0)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,0,60,0", "gpus is 0"),
        ("x,0,60,1.5", "gpus is '1.5'; it must be a whole number"),
        ("x,0,0,1", "duration_s is 0"),
        ("x,0,-5,1", "duration_s is -5"),
        ("x,0,nan,1", "duration_s is nan"),
        ("x,inf,60,1", "submit_s is inf"),
        ("x,-1,60,1", "submit_s is -1"),
        ("x,zero,60,1", "submit_s is 'zero'; it must be a number"),
        ("x,0,1e999,1", "duration_s is inf"),
        ("x,0,60,inf", "gpus is 'inf'; it must be a whole number"),
        ("good,0,60,1", "its job_id was seen before"),
        ("x,0,60", "more or fewer cells"),
        ("x,0,60,1,9", "more or fewer cells"),
    ],
)
def test_a_bad_row_is_refused_with_its_number_and_the_rest_is_read(
    tmp_path: Path, row: str, reason: str
) -> None:
    trace = load_trace(write(tmp_path, EXAMPLES["pai"][0], "good,0,60,1", row, "other,1,60,1"))
    assert [job.job_id for job in trace.jobs] == ["good", "other"]
    [refusal] = trace.refused
    assert refusal.row == 2
    assert reason in refusal.reason


def test_a_job_outside_its_own_bounds_is_refused(tmp_path: Path) -> None:
    trace = load_trace(
        write(tmp_path, "job_id,submit_s,gpus,duration_s,min_gpus,max_gpus", "a,0,2,60,1,4", "b,0,8,60,1,4")
    )
    assert [refusal.reason for refusal in trace.refused] == ["gpus 8 is not from min_gpus 1 to max_gpus 4"]


@pytest.mark.parametrize("column", ["user", "weight", "deadline_s", "slo", "priority", "gpu_type"])
def test_no_column_of_our_schema_is_overlooked(tmp_path: Path, column: str) -> None:
    """Four of its columns are a public trace's."""
    plain = write(tmp_path, "job_id,submit_s,duration_s,gpus", "j,0,60,1")
    assert load_trace(plain).meta["source"] == "pai"
    own = write(tmp_path, f"job_id,submit_s,duration_s,gpus,{column}", "j,0,60,1,2", name="own.csv")
    assert str(getattr(load_trace(own).jobs[0], column)).startswith("2")


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        *(("weight", value, "more than 0") for value in ("0", "-1", "nan", "inf")),
        *(("restart_s", value, "0 or more") for value in ("-1", "nan", "inf")),
        *(("pred_duration_s", value, "0 or more") for value in ("-1", "nan", "inf")),
        *(("deadline_s", value, "must be finite") for value in ("nan", "inf")),
        *(("nodes", value, "0 or more") for value in ("-1",)),
        ("max_gpus", "-2", "0 or more"),
        ("slo", "0", "more than 0"),
        ("priority", "inf", "priority is 'inf'; it must be a whole number"),
        ("work", "0", "more than 0"),
    ],
)
def test_a_figure_that_no_simulation_could_end_with_is_refused(
    tmp_path: Path, column: str, value: str, reason: str
) -> None:
    header = f"job_id,submit_s,gpus,duration_s,{column}"
    trace = load_trace(write(tmp_path, header, "good,0,1,60,", f"x,0,1,60,{value}"))
    assert [job.job_id for job in trace.jobs] == ["good"]
    [refusal] = trace.refused
    assert refusal.reason.startswith(column)
    assert reason in refusal.reason


def test_an_unknown_table_names_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no known trace's\. Known are philly"):
        load_trace(write(tmp_path, "a,b", "1,2"))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"\x00\x00"])
def test_a_file_that_is_no_table_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"jobs\.csv"):
        load_trace(path)


def test_a_broken_archive_and_a_missing_file_are_clear_errors(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(b"job_id,submit_s,duration_s,gpus\n" * 500)[:40])
    for broken in (path, tmp_path / "none.csv"):
        with pytest.raises(TraceError, match="cannot be read"):
            load_trace(broken)


def test_a_file_of_several_traces_plays_the_one_that_is_named(tmp_path: Path) -> None:
    header, row = EXAMPLES["gavel-lists"][0], EXAMPLES["gavel-lists"][1].split(",")
    path = write(tmp_path, header, *(",".join([name, *row[1:]]) for name in ("a", "b")))
    with pytest.raises(TraceError, match="holds 2 traces; name one with --group: a, b"):
        load_trace(path)
    assert [job.group for job in load_trace(path, "b").jobs] == ["b"]
    with pytest.raises(TraceError, match="no group 'c'; there are a, b"):
        load_trace(path, "c")


def test_a_folder_brings_its_capacity_changes(tmp_path: Path) -> None:
    write(tmp_path, *EXAMPLES["pai"])
    write(tmp_path, "t_s,node,available", "90,gpu,1", "30,gpu,0", name="capacity.csv")
    assert [change.t_s for change in load_trace(tmp_path).capacity] == [30, 90]


@pytest.mark.parametrize(
    ("name", "rows", "said"),
    [
        ("capacity.csv", ("t_s,node,available", "0,gpu,1", "soon,gpu,1"), r"row 2: .*t_s is 'soon'"),
        ("capacity.csv", ("t_s,node,available", "0,gpu,1.5"), r"row 1: .*available is '1\.5'"),
        ("capacity.csv", ("t_s,node", "0,gpu"), "row 1: .*no column 'available'"),
        ("pairs.csv", ("profile_a,profile_b,rate_a,rate_b", "p,q,1,fast"), "row 1: .*rate_b is 'fast'"),
        ("profiles.csv", ("profile,gpu_type,gpus,rate", "p,gpu,1,1", "p,gpu,2,"), "row 2: .*rate is ''"),
        ("cluster.csv", ("node,gpu_type,gpus,price_per_h", "n,gpu,1,dear"), "row 1: .*price_per_h is 'dear'"),
    ],
)
def test_a_bad_cell_of_a_side_file_is_named_with_file_row_and_column(
    tmp_path: Path, name: str, rows: tuple[str, ...], said: str
) -> None:
    path = write(tmp_path, "job_id,submit_s,gpus,work,profile", "a,0,1,600,p").parent
    write(tmp_path, "node,gpu_type,gpus", "n,gpu,8", name="cluster.csv")
    write(tmp_path, "profile,gpu_type,gpus,rate", "p,gpu,1,1", name="profiles.csv")
    write(tmp_path, *rows, name=name)
    with pytest.raises(SimulatorError, match=rf"^{name}, {said}"):
        open_scenario(path)


def test_what_the_cluster_cannot_hold_is_refused_by_row(tmp_path: Path) -> None:
    rows = ("big,0,60,32", "odd,1,60,11", "fits,2,60,12")
    scenario = open_scenario(write(tmp_path, EXAMPLES["pai"][0], *rows), parse_cluster("gpu:2x8"))
    assert [job.job_id for job in scenario.trace.jobs] == ["fits"]
    assert [(refusal.row, refusal.job_id) for refusal in scenario.refused] == [(1, "big"), (2, "odd")]
    assert scenario.refused[0].reason == "needs 32 GPUs in equal parts; the cluster offers 2 × 8 gpu"


def test_a_trace_of_which_nothing_fits_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no job fits the cluster"):
        open_scenario(write(tmp_path, *EXAMPLES["pai"]), parse_cluster("gpu:1x4"))


def test_the_offered_load_is_gpu_time_over_arrivals_and_gpus(tmp_path: Path) -> None:
    rows = ("a,0,100,4", "b,100,100,4")
    scenario = open_scenario(write(tmp_path, EXAMPLES["pai"][0], *rows), parse_cluster("gpu:2x8"))
    assert scenario.load == pytest.approx((400 + 400) / 100 / 16)


@pytest.mark.parametrize(
    "text",
    ["", "a100", "a100:8", "a100:0x8", "a100:8x8,", "a100:8x8@x", "a:1x1,a:2x1", "a:1x1@1,a:1x2@2",
     "a:1x8/", "a:1x8/numa", "a:1x8/numa=0", "a:1x8/numa=9", "a:1x8/numa=x", "a:1x8/numa=²",
     "a:1x8/numa=4/numa=4", "a:1x8/rack=2", "a:1x8/socket=4/numa=3", "a:1x8/numa=2/pcie=4",
     "a:1x8/nvlink=1", "a:1x8@1/numa=4"],
)  # fmt: skip
def test_a_cluster_that_is_not_understood_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ClusterError, match="--cluster"):
        parse_cluster(text)


@pytest.mark.parametrize(
    ("text", "sites"),
    [
        ("a:2x4", ()),
        ("a:2x4/numa=2", ((0, 0, 0, None), (0, 0, 1, None), (0, 1, 2, None), (0, 1, 3, None))),
        ("a:2x4/socket=2/pcie=2@1.5", ((0, 0, 0, None), (0, 0, 0, None), (1, 1, 1, None), (1, 1, 1, None))),
        ("a:2x4/nvlink=4", ((0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 2, 0), (0, 0, 3, 0))),
        ("a:2x3/nvlink=2", ((0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 2, 1))),
    ],
)
def test_a_cluster_says_where_its_gpus_sit(text: str, sites: tuple[tuple[int | None, ...], ...]) -> None:
    cluster = parse_cluster(text)
    assert cluster.pools[0].sites == sites
    assert parse_cluster(as_text(cluster)) == cluster


def test_a_job_that_requires_one_numa_node_waits_for_it() -> None:
    jobs = [job(f"j{i}", gpus=1, runs_s=100.0 * (1 + i % 2)) for i in range(4)]
    jobs.append(job("close", 1.0, gpus=2, topology="guaranteed", topology_level="numa"))
    assert play(jobs, "gpu:1x4", "fifo").runs["close"].first_start is None
    assert play(jobs, "gpu:1x4/numa=2", "fifo").runs["close"].first_start == 200.0
    assert play(jobs, "gpu:1x4/nvlink=4", "fifo").runs["close"].first_start == 100.0


def test_our_own_schema_survives_writing_and_reading(tmp_path: Path) -> None:
    [job] = load_trace(write(tmp_path, *EXAMPLES["openb"])).jobs
    values = (getattr(job, name) for name in COLUMNS.values())
    cells = ["" if value is None else value for value in values]
    files.write_rows(tmp_path / "own.csv.gz", COLUMNS, [cells])
    assert load_trace(tmp_path / "own.csv.gz").jobs == (job,)


def test_a_trace_may_bring_its_own_table_of_rates(tmp_path: Path) -> None:
    write(tmp_path, "job_id,submit_s,gpus,work,profile", "a,0,2,600,bert", "b,0,4,600,bert")
    write(tmp_path, "profile,gpu_type,gpus,rate", "bert,gpu,2,3.0", name="profiles.csv")
    scenario = open_scenario(tmp_path, parse_cluster("gpu:1x8"))
    [job] = scenario.trace.jobs
    assert scenario.alone_s(job) == 200
    assert scenario.refused[0].reason == "its profile was not measured on these GPUs"


def test_a_deadline_may_be_a_multiple_of_the_time_alone(tmp_path: Path) -> None:
    header = "trace,idx,job_type,total_steps,scale_factor,priority_weight,slo,arrival_s"
    path = write(tmp_path, header, "all,0,LM,400,2,1,1.5,10", "all,1,LM,400,2,1,-1,20")
    rates = {"v100": {"('LM', 2)": {"null": 4.0}}, "k80": {"('LM', 2)": {"null": 1.0}}}
    write(tmp_path, json.dumps(rates), name="simulation_throughputs.json")
    jobs = open_scenario(path, parse_cluster("v100:1x2,k80:1x2")).trace.jobs
    assert [job.deadline_s for job in jobs] == [10 + 1.5 * 100, None]


def test_profiles_without_rates_are_an_error_that_says_what_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "job_id,submit_s,gpus,work,profile", "a,0,2,600,bert")
    with pytest.raises(TraceError, match="its jobs have profiles; neither profiles"):
        open_scenario(path, parse_cluster("gpu:1x8"))
    write(tmp_path, "profile,gpu_type,gpus,rate", "bert,gpu,two,3.0", name="profiles.csv")
    with pytest.raises(TraceError, match=r"profiles\.csv, row 1"):
        open_scenario(path, parse_cluster("gpu:1x8"))
