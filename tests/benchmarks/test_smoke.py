"""Benchmarks run to their end on the smallest input, so that their figures can be made again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
RUNS = "{history}/llmfinetuningbench/runs.csv"
CHEAP = (
    "benchmarks/scheduler/tick.py fifo --jobs 20 --nodes 3",
    "-m benchmarks.scheduler.reforecast --runs 20",
    "benchmarks/knowledge/similar_jobs/found.py --runs 5 --past 50",
)
# Each takes half a minute or more: predictors are learnt, or a portal is filled.
DEAR = (
    "benchmarks/knowledge/own_trainer.py",
    "benchmarks/knowledge/similar_jobs/durations.py --owners 1 --past 20",
    "benchmarks/knowledge/peaks/published.py",
    "-m benchmarks.knowledge.borrowed_facts",
    "-m benchmarks.portal.pages --small --requests 1",
    "-m benchmarks.scheduler.ahead.start_times --worlds 1 --jobs 30 --moments 1",
    "-m benchmarks.scheduler.ahead.counterfactuals --worlds 1 --jobs 30 --moments 1",
    "benchmarks/scheduler/live_gain.py --jobs 4 --policies fifo",
    "benchmarks/scheduler/live_tick.py --jobs 20 --nodes 3 --repeats 2",
    "benchmarks/scheduler/topology/topology.py --seeds 1 --hours 0.5 --loads 0.6",
)
OF_SHARED_DATA = (
    f"benchmarks/scheduler/cotune.py {RUNS} --jobs 4 --seeds 1 --sia-seeds 1",
    "-m benchmarks.scheduler.defaults --parts 1 --jobs 30 --loads 0.8 --traces venus",
    "benchmarks/knowledge/peaks/floors.py {history}",
    "benchmarks/knowledge/twins.py {history}",
    f"benchmarks/knowledge/regret.py {RUNS} --source llmfinetuningbench --folds 2",
)


def play(command: str) -> None:
    words = command.format(history=SHARED / "history").split()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.strip()


@pytest.mark.parametrize("command", CHEAP)
def test_it_runs(command: str) -> None:
    play(command)


@pytest.mark.slow
@pytest.mark.parametrize("command", DEAR)
def test_a_dear_one_runs(command: str) -> None:
    play(command)


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("command", OF_SHARED_DATA)
def test_one_of_shared_data_runs(command: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data beside the checkout")
    play(command)
