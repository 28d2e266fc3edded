"""The traces of the repository against a second, much simpler simulator.

It shares no code with ours.
"""

from __future__ import annotations

import csv
import gzip
import heapq
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest

from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.predictions import Fidelity
from tests.scheduler.simulator.public_traces.traces import SAMPLES, scenario

ROOT = Path(__file__).parents[4]
Recorded = tuple[float, int, float]  # submission (s), GPUs, duration (s)


def recorded(trace: str) -> list[Recorded]:
    """The jobs of a file in order of submission, read without any of our importers."""
    path = SAMPLES / trace
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = list(csv.DictReader(content.decode().splitlines()))
    jobs = [
        (
            seconds(row.get("submit_s") or row["submit_time"]),
            int(row.get("gpus") or row["num_gpu"]),
            float(row.get("duration_s") or row["duration"]),
        )
        for row in rows
    ]
    return sorted(jobs, key=lambda job: job[0])


def seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text + "+00:00").timestamp()


def first_in_first_out(jobs: Iterable[Recorded], gpus: int) -> tuple[float, float]:
    """Return the mean job completion time and the makespan (s).

    All jobs share one pool of GPUs in which no job passes another.
    """
    free, running, now, first, last, taken = gpus, [], 0.0, None, 0.0, []
    for submitted, needed, duration in jobs:
        now = max(now, submitted)
        while running and (running[0][0] <= now or free < needed):
            end, released = heapq.heappop(running)
            now, free = max(now, end), free + released
        free -= needed
        heapq.heappush(running, (now + duration, needed))
        first = submitted if first is None else first
        last = max(last, now + duration)
        taken.append(now + duration - submitted)
    return sum(taken) / len(taken), last - (first or 0.0)


@pytest.mark.parametrize(
    ("trace", "cluster", "gpus"),
    [
        ("philly/philly_2017-10-16.csv.gz", "gpu:40x8", 320),
        ("philly/philly_2017-10-16.csv.gz", "gpu:100x8", 800),
        ("helios_venus/venus_sept_5000.csv.gz", "gpu:90x8", 720),
        ("helios_venus/venus_sept_5000.csv.gz", "gpu:64x8", 512),
        ("tiresias/60_job.csv", "gpu:2x4", 8),
        ("elasticflow/elasticVpollux_e.csv", "gpu:16x8", 128),
    ],
)
def test_both_simulators_agree_on_first_in_first_out(trace: str, cluster: str, gpus: int) -> None:
    jobs = recorded(trace)
    mean_s, makespan_s = first_in_first_out(jobs, gpus)
    found = scenario(trace, cluster)
    _, metrics = found.simulate(SIMULATED["fifo-distributed"], Fidelity.ORACLE, SimulationSettings())
    assert (len(found.trace.jobs), len(found.refused)) == (len(jobs), 0)
    assert metrics.jct_mean_s == pytest.approx(mean_s, rel=1e-9)
    assert metrics.makespan_s == pytest.approx(makespan_s, rel=1e-9)


@pytest.mark.parametrize("trace", ["tiresias/60_job.csv", "elasticflow/elasticVpollux_e.csv"])
def test_the_offered_load_is_gpu_time_over_the_time_of_arrivals(trace: str) -> None:
    jobs = recorded(trace)
    work = sum(gpus * duration for _, gpus, duration in jobs)
    span = jobs[-1][0] - jobs[0][0]
    assert scenario(trace, "gpu:16x8").load == pytest.approx(work / span / 128, rel=1e-9)


def test_the_notice_names_every_sample_and_its_licence() -> None:
    notice = (ROOT / "NOTICE").read_text()
    files = [path for path in SAMPLES.rglob("*") if path.is_file() and path.name != "LICENSE.txt"]
    assert files
    for path in files:
        paragraph = next(text for text in notice.split("\n\n") if str(path.relative_to(ROOT)) in text)
        assert any(licence in paragraph for licence in ("CC BY 4.0", "Apache-2.0", "MIT (LICENSE.txt there)"))
    assert sum(path.stat().st_size for path in files) < 250_000
