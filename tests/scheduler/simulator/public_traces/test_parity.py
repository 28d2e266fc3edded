"""Figures of public simulators on public traces.

docs/simulator.md names the source of each.
"""

from __future__ import annotations

import pytest

from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.metrics import Metrics
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.predictions import Fidelity
from tests.scheduler.simulator.public_traces.traces import scenario

VENUS = "helios_venus/venus_sept_5000.csv.gz"
VENUS_WITH_PREDICTIONS = "helios_venus/bench_venus_sept_5000.csv.gz"


def played(
    trace: str, cluster: str, policy: str, level: Fidelity = Fidelity.ORACLE, **settings: float
) -> Metrics:
    _, metrics = scenario(trace, cluster).simulate(SIMULATED[policy], level, SimulationSettings(**settings))  # type: ignore[arg-type]
    return metrics


@pytest.mark.parametrize(
    ("cluster", "policy", "jct_s", "makespan_s", "within"),
    [
        ("gpu:90x8", "fifo-strict", 20_555.5, 689_008, 0.001),
        ("gpu:64x8", "fifo-strict", 102_642.9, 856_823, 0.001),
        ("gpu:90x8", "fifo-distributed", 17_265.6, 689_008, 0.001),
        pytest.param("gpu:90x8", "fifo-backfill", 9_563.9, 689_008, 0.001, marks=pytest.mark.slow),
        ("gpu:90x8", "sjf", 9_230.2, 689_008, 0.01),
    ],
)
def test_rigid_jobs_on_venus(
    cluster: str, policy: str, jct_s: float, makespan_s: float, within: float
) -> None:
    metrics = played(VENUS, cluster, policy)
    assert metrics.jct_mean_s == pytest.approx(jct_s, rel=within)
    assert metrics.makespan_s == pytest.approx(makespan_s, rel=within)


def test_the_offered_load_of_the_bench_file_is_what_its_readme_says() -> None:
    assert scenario(VENUS, "gpu:90x8").load * 720 == pytest.approx(651, abs=1)


@pytest.mark.slow
def test_shortest_remaining_time_on_venus_with_a_restart_of_60_s() -> None:
    metrics = played(VENUS, "gpu:90x8", "srtf", restart_s=60)
    assert metrics.jct_mean_s == pytest.approx(8_426.9, rel=0.01)


@pytest.mark.shared_data
def test_tiresias_on_pollux_workload_6() -> None:
    metrics = played(
        "pollux_osdi21/workloads/workload-6.csv", "gpu:16x4", "tiresias-adaptdl", Fidelity.DEFAULT
    )
    assert metrics.jct_mean_s == pytest.approx(3_469.7, rel=0.03)


@pytest.mark.shared_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "level", "jct_s", "within"),
    [
        ("gpu:90x8", Fidelity.ORACLE, 8_365.1, 0.01),
        ("gpu:90x8", Fidelity.PERFORMANCE, 8_406.0, 0.02),
        ("gpu:64x8", Fidelity.PERFORMANCE, 9_236.2, 0.01),
    ],
)
def test_lucids_pairs_on_venus(cluster: str, level: Fidelity, jct_s: float, within: float) -> None:
    """Theirs gives each job one of 66 profiles by chance; here only its sharing score."""
    engine, metrics = scenario(VENUS_WITH_PREDICTIONS, cluster).simulate(
        SIMULATED["lucid"], level, packing=True
    )
    assert metrics.jct_mean_s == pytest.approx(jct_s, rel=within)
    assert engine.machines.free_gpus == engine.machines.ready_gpus


@pytest.mark.shared_data
@pytest.mark.slow
def test_sia_on_its_own_workload() -> None:
    metrics = played("sia/workloads/philly/workload-1.csv", "aws:6x4,rtx:3x8,dgx-ext:2x8", "sia")
    assert metrics.finished == 160
    assert metrics.jct_mean_s <= 1_950


@pytest.mark.parametrize(
    ("group", "jct_s", "makespan_s"),
    [("max_min_fairness", 14_623, 63_945), ("minimize_makespan", 35_659, 68_522)],
)
def test_gavel_on_its_own_lists(group: str, jct_s: float, makespan_s: float) -> None:
    """Theirs: the policy max_min_fairness_perf on both lists."""
    lists = "gavel/physical_cluster_jobs.csv.gz"
    _, metrics = scenario(lists, "v100:8x1,p100:16x1,k80:24x1", group).simulate(
        SIMULATED["gavel"], Fidelity.ORACLE
    )
    assert metrics.jct_mean_s == pytest.approx(jct_s, rel=0.05)
    assert metrics.makespan_s == pytest.approx(makespan_s, rel=0.05)


@pytest.mark.parametrize(
    ("trace", "cluster", "policy", "met"),
    [
        ("elasticVpollux_e.csv", "gpu:16x4", "edd", 0.28),
        ("philly_103959.csv", "gpu:4x8", "edd", 0.24),
        ("philly_103959.csv", "gpu:4x8", "fifo", 0.21),
    ],
)
def test_deadlines_met_of_elasticflows_traces(trace: str, cluster: str, policy: str, met: float) -> None:
    """The figures of docs/simulator.md."""
    metrics = played(f"elasticflow/{trace}", cluster, policy)
    assert 1 - metrics.violation_ratio == pytest.approx(met, abs=0.005)


@pytest.mark.shared_data
@pytest.mark.slow
def test_all_of_philly_lands_where_kavier_does() -> None:
    metrics = played("philly/philly_jobs.csv.gz", "gpu:100x8", "fifo-distributed")
    assert metrics.jct_mean_s == pytest.approx(14_383.8, rel=0.0001)
