"""How close the GPUs of urgent jobs lie, by how running jobs are stopped for them.

python benchmarks/scheduler/topology/topology.py [--seeds 20] [--hours 8] [--loads 0.6 0.8 0.9 0.95]

Eight nodes of eight GPUs without NVLink: two NUMA nodes of four GPUs each, one a socket. (Where a switch
links all GPUs of a node, every arm is as close.) Batch jobs of 1, 2 and 4 GPUs make four fifths of the load,
urgent ones of 2 and 4 the rest. Urgent jobs train in full: their tokens/s by level are those of 8B parameters
under FSDP by the communication model; batch jobs train adapters, which are as fast anywhere. A stop saves
first and costs a restart of 60 s. Arms: `priority`, by class alone, least harm; `fewest`, the policy
`topology` without closeness asked; `best effort` and `required`: one NUMA node or closer. Reach: the share of
starts for which others were stopped that reach this level; all starts: the same of all of urgent jobs.
Tokens/s: per GPU, at these starts. Means over the seeds with 95 % bootstrap intervals. Last: CPU time of a
decision of `topology` over 1,000 jobs on 100 full nodes.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.scheduler.bootstrap import bootstrap_mean
from benchmarks.scheduler.clusters import queued
from benchmarks.scheduler.yardstick import loop_s
from knowledge.core.domain.types import Option
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.policies.topology import TOPOLOGY
from scheduler.core.types import Action, GpuId, GpuSite, Policy, Preempt, Topology
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import RecordedTruth
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from scheduler.simulator.world.runs import Run

BATCH_S, URGENT_S, URGENT_SHARE = 7200.0, 3600.0, 0.2
ASKED = TopologyLevel.NUMA
BEST = TopologyLevel.PCIE  # of these nodes
# Tokens/s per GPU of full training, 8.03B parameters, two GPUs, over the stated links (link_levels.py).
FULL = {BEST: 1454, TopologyLevel.NUMA: 1314, TopologyLevel.SOCKET: 1132, TopologyLevel.NODE: 955}
SITES = tuple(GpuSite(index // 4, index // 4, index // 2) for index in range(8))
CLUSTER = Cluster((NodeGroup("pcie", 8, 8, sites=SITES),))
RULES = CycleOptions(preempts=True)
BY_CLASS = Ranked(
    "priority", lambda _job, _now: (0.0,), RULES, round_s=60.0, description=TOPOLOGY.description
)
ARMS: dict[str, tuple[Policy, str]] = {
    "priority": (BY_CLASS, ""),
    "fewest": (TOPOLOGY, ""),
    "best effort": (TOPOLOGY, Topology.BEST_EFFORT),
    "required": (TOPOLOGY, Topology.GUARANTEED),
}


class Truth(RecordedTruth):
    """Urgent jobs are slower on GPUs that lie apart."""

    def kept_at(self, job: TraceJob, option: Option, level: TopologyLevel) -> float:
        return FULL[level] / FULL[BEST] if job.priority else 1.0


class Noting(Engine):
    """Remembers the level of each start of an urgent job, and whether others were stopped for it."""

    starts: list[tuple[TopologyLevel, bool]]
    freed: set[GpuId]

    def _apply(self, actions: Iterable[Action], now: float) -> None:
        made = list(actions)
        stopped = [self.runs[action.job].gpus for action in made if isinstance(action, Preempt)]
        self.freed = {gpu for gpus in stopped for gpu in gpus}
        super()._apply(made, now)

    def _start(
        self, run: Run, now: float, option: Option, gpus: tuple[GpuId, ...], host: Run | None = None
    ) -> None:
        super()._start(run, now, option, gpus, host)
        level = self.machines.level(gpus)
        if run.job.priority and level is not None:
            self.starts.append((level, bool(self.freed & set(gpus))))


class Outcome(NamedTuple):
    """Of one run. NaN where nobody was stopped."""

    reach: float  # %
    all_starts: float  # %
    pace: float  # tokens/s per GPU
    stops: float
    lost: float  # GPU-hours of jobs that were stopped
    wait_s: float  # of urgent jobs
    urgent_s: float  # mean JCT
    batch_h: float  # mean JCT


def arrivals(load: float, hours: float, seed: int, asks: str) -> list[TraceJob]:
    rng = random.Random(seed)
    jobs: list[TraceJob] = []
    kinds = (("batch", (1, 2, 4), BATCH_S, 1 - URGENT_SHARE), ("urgent", (2, 4), URGENT_S, URGENT_SHARE))
    for name, sizes, lasts_s, share in kinds:
        every_s = mean(sizes) * lasts_s / (load * share * CLUSTER.total_gpus)
        at = rng.expovariate(1 / every_s)
        while at < hours * 3600:
            gpus, urgent = rng.choice(sizes), name == "urgent"
            jobs.append(
                TraceJob(
                    job_id=f"{name}-{len(jobs):04}", submit_s=at, gpus=gpus, priority=int(urgent),
                    duration_s=rng.expovariate(1 / lasts_s) + 60,
                    topology=asks if urgent else "", topology_level=ASKED.word if urgent and asks else "",
                )
            )  # fmt: skip
            at += rng.expovariate(1 / every_s)
    return sorted(jobs, key=lambda job: job.submit_s)


def play(arm: str, load: float, hours: float, seed: int) -> Outcome:
    policy, asks = ARMS[arm]
    truth = Truth()
    predictions = PredictionModel(Fidelity.ORACLE, truth, CLUSTER)
    settings = SimulationSettings(round_s=0.0, restart_s=60.0, checkpoint_s=600.0)
    engine = Noting(arrivals(load, hours, seed, asks), CLUSTER, policy, truth, predictions, settings)
    engine.starts = []
    engine.run()
    runs = list(engine.runs.values())
    urgent, batch = [run for run in runs if run.job.priority], [run for run in runs if not run.job.priority]
    close = [level >= ASKED for level, stopped in engine.starts if stopped]
    return Outcome(
        reach=100 * mean(close) if close else float("nan"),
        all_starts=100 * mean(level >= ASKED for level, _ in engine.starts),
        pace=mean(FULL[level] for level, _ in engine.starts),
        stops=sum(run.preemptions for run in runs),
        lost=sum(run.lost_gpu_s for run in batch) / 3600,
        wait_s=mean((run.first_start or 0.0) - run.job.submit_s for run in urgent),
        urgent_s=mean((run.finished or 0.0) - run.job.submit_s for run in urgent),
        batch_h=mean((run.finished or 0.0) - run.job.submit_s for run in batch) / 3600,
    )


def decision_s() -> float:
    """CPU seconds of a decision on full nodes with sites, in which every tenth job is urgent."""
    state = queued(1000, 100, busy=True)
    nodes = tuple(replace(node, sites=SITES) for node in state.nodes)
    jobs = tuple(
        replace(job, priority=1, topology=Topology.GUARANTEED, level=int(ASKED))
        if job.holds is None and number % 10 == 0
        else job
        for number, job in enumerate(state.jobs)
    )
    state, took = replace(state, jobs=jobs, nodes=nodes), []
    for _ in range(5):
        began = process_time()
        TOPOLOGY.decide(state, 1e6)
        took.append(process_time() - began)
    return median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.6, 0.8, 0.9, 0.95])
    options = parser.parse_args()
    names = (
        "reach, %",
        "all starts, %",
        "tokens/s",
        "stops",
        "lost GPU-h",
        "wait, s",
        "urgent JCT, s",
        "batch JCT, h",
    )
    print("| load | arm |", " | ".join(names), "|")
    print("| --- | --- |" + " ---: |" * len(names))
    for load in options.loads:
        for arm in ARMS:
            found = [play(arm, load, options.hours, seed) for seed in range(options.seeds)]
            columns = [[value for value in column if value == value] for column in zip(*found, strict=True)]
            cells = [str(bootstrap_mean(column)) if column else "–" for column in columns]
            print(f"| {load:g} | {arm} |", " | ".join(cells), "|", flush=True)
    took, loop = decision_s(), loop_s()
    print(f"a decision, 1,000 jobs, 100 nodes: {1000 * took:.1f} ms CPU, {took / loop:.2f} loops")


if __name__ == "__main__":
    main()
