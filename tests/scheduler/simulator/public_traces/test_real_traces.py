"""Every importer on the data it was written for.

The tests cover rows read and refused, and the load that a trace offers.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.policies import POLICIES
from scheduler.simulator.errors import TraceError
from scheduler.simulator.world.predictions import Fidelity
from tests.scheduler.simulator.public_traces.test_parity import VENUS_WITH_PREDICTIONS
from tests.scheduler.simulator.public_traces.traces import scenario

pytestmark = pytest.mark.shared_data
SIA = "aws:6x4,rtx:3x8,dgx-ext:2x8"
OPENB = "G2:700x8,T4:400x2,P100:100x2,V100M16:30x8,V100M32:30x8,G3:40x8,A10:2x1"


@pytest.mark.parametrize(
    ("importer", "file", "cluster", "jobs", "refused", "load"),
    [
        ("philly", "philly/philly_jobs.csv.gz", "gpu:100x8", 65_123, 0, 0.366),
        ("venus", "helios_venus/venus_2020-09_with_predictions.csv.gz", "gpu:133x8", 25_596, 0, 0.628),
        ("venus-bench", VENUS_WITH_PREDICTIONS, "gpu:90x8", 5_000, 0, 0.905),
        ("pai", "alibaba/pai2020_first10000.csv.gz", "gpu:800x8", 10_000, 0, 0.058),
        ("openb", "alibaba/gpu_v2023_openb_pods.csv.gz", OPENB, 7_063, 1_089, 0.002),
        ("sia", "sia/workloads/philly/workload-1.csv", SIA, 160, 0, 1.014),
        ("sia", "pollux_osdi21/workloads/workload-6.csv", "gpu:16x4", 160, 0, 2.264),
        ("gavel", "gavel/msr_seed0_jobs.csv.gz", "v100:36x4,p100:36x4,k80:36x4", 13_716, 1_548, 0.566),
        ("elasticflow", "elasticflow/elasticVpollux_e.csv", "gpu:16x8", 195, 0, 1.519),
        ("tiresias", "tiresias/60_job.csv", "gpu:15x4", 60, 0, 0.249),
    ],
)
def test_a_public_trace_is_read_and_states_its_load(
    importer: str, file: str, cluster: str, jobs: int, refused: int, load: float
) -> None:
    found = scenario(file, cluster)
    assert found.trace.meta["source"] == importer
    assert (len(found.trace.jobs), len(found.refused)) == (jobs, refused)
    assert found.load == pytest.approx(load, abs=0.0006 if load < 1 else 0.006)


def test_each_of_gavels_lists_is_a_trace() -> None:
    found = scenario("gavel/physical_cluster_jobs.csv.gz", "v100:8x1,p100:16x1,k80:24x1", "max_min_fairness")
    assert (len(found.trace.jobs), found.refused) == (96, [])
    assert found.load == pytest.approx(0.627, abs=0.0006)


def test_a_job_alone_on_the_gpus_it_asks_for_takes_its_time_alone() -> None:
    """Its epochs have paces of their own; the engine plays them one after the other."""
    whole = scenario("sia/workloads/philly/workload-1.csv", "aws:16x4")
    for job in whole.trace.jobs[:8]:
        alone = replace(whole, trace=replace(whole.trace, jobs=(job,)))
        engine, metrics = alone.simulate(POLICIES["fifo"], Fidelity.DEFAULT)
        [run] = engine.runs.values()
        assert metrics.jct_mean_s == pytest.approx(alone.alone_s(job) + run.moving - run.since)
        assert run.moving > run.since  # start-up is apart


def test_jobs_without_gpus_and_without_measurements_are_refused_by_row() -> None:
    pods = scenario("alibaba/gpu_v2023_openb_pods.csv.gz", OPENB)
    assert (pods.refused[0].row, pods.refused[0].reason) == (6, "gpus is 0; a job needs more than 0")
    one_type = scenario("gavel/msr_seed0_jobs.csv.gz", "v100:36x4")
    assert one_type.refused[0].reason == "its profile was not measured on these GPUs"


@pytest.mark.parametrize("file", ["acme/cluster_summary.csv", "spot_bamboo/p3-trace_events.csv.gz"])
def test_a_file_that_is_no_trace_of_jobs_says_what_is_known(file: str) -> None:
    with pytest.raises(TraceError, match="its columns are no known trace's"):
        scenario(file, "gpu:1x8")
