"""Every importer on the data it was written for: what is read, what is refused, and the load it offers."""

from __future__ import annotations

import pytest

from scheduler.simulator.errors import TraceError
from tests.scheduler.simulator.test_parity import VENUS_WITH_PREDICTIONS
from tests.scheduler.simulator.traces import scenario

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
        ("sia", "sia/workloads/philly/workload-1.csv", SIA, 160, 0, 5.641),
        ("sia", "pollux_osdi21/workloads/workload-6.csv", "gpu:16x4", 160, 0, 13.49),
        ("gavel", "gavel/msr_seed0_jobs.csv.gz", "v100:36x4,p100:36x4,k80:36x4", 13_716, 1_548, 0.566),
        ("gavel-lists", "gavel/physical_cluster_jobs.csv.gz", "v100:8x1,p100:16x1,k80:24x1", 287, 0, 1.72),
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


def test_jobs_without_gpus_and_without_measurements_are_refused_by_row() -> None:
    pods = scenario("alibaba/gpu_v2023_openb_pods.csv.gz", OPENB)
    assert (pods.refused[0].row, pods.refused[0].reason) == (6, "gpus is 0; a job needs more than 0")
    one_type = scenario("gavel/msr_seed0_jobs.csv.gz", "v100:36x4")
    assert one_type.refused[0].reason == "its profile was not measured on these GPUs"


@pytest.mark.parametrize("file", ["acme/cluster_summary.csv", "spot_bamboo/p3-trace_events.csv.gz"])
def test_a_file_that_is_no_trace_of_jobs_says_what_is_known(file: str) -> None:
    with pytest.raises(TraceError, match="its columns are no known trace's"):
        scenario(file, "gpu:1x8")
