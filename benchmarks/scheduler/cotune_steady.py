"""CoTune's claim in the steady state, over defaults, models never seen, and GPU models.

python benchmarks/scheduler/cotune_steady.py RUNS.CSV [--gpu MODEL --bundles 2] [--jobs 400] [--seeds 10]

Jobs, truth and failures are those of benchmarks/scheduler/cotune.py. Arrivals go on before and
after the jobs that are measured, the middle three fifths, so that a queue neither starts empty nor
drains. First every arm is offered the load by its own arrivals: each does the same share of what it
could. Then two arms have the same arrivals, by which the default offers the load: what a change
gains. Results: docs/simulator.md.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.scheduler.bootstrap import bootstrap_mean, paired_change
from benchmarks.scheduler.cotune import (
    AS_SUBMITTED,
    EASY,
    FAILS_AFTER_S,
    FIFO,
    ORACLE,
    PERFORMANCE,
    Arm,
    Measured,
    Offers,
    jobs_of,
    one,
)
from benchmarks.scheduler.cotune_jobs import GPU, LEAST_BUNDLES, Kind, base_of, kinds_of, prediction_error
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import registry
from knowledge.core.domain.types import Goal
from scheduler.core.types import Policy
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import Cluster, parse_cluster
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings

LOADS = (0.5, 0.7, 0.9)
DEFAULTS = (1, 4, 8, 16)
MARGIN = 0.2  # share of the jobs before and after those that are measured
Kinds = dict[str, Kind]


def default_of(gpus: int) -> Arm:
    return Arm(f"default {gpus}", one(lambda kind, _: kind.default(gpus)))


def arrivals(kinds: Kinds, arm: Arm, load: float, count: int, seed: int, gpus: int) -> list[TraceJob]:
    """The seed's jobs, so far apart that this arm's first choices offer the load."""
    jobs = jobs_of(list(kinds.values()), count, 1.0, seed)
    gap_s = sum(_gpu_s(kinds, arm, job) for job in jobs) / count / load / gpus
    rng, at, placed = random.Random(f"arrivals {seed}"), 0.0, []
    for job in jobs:
        placed.append(replace(job, submit_s=at))
        at += rng.expovariate(1.0 / gap_s)
    return placed


def _gpu_s(kinds: Kinds, arm: Arm, job: TraceJob) -> float:
    """GPU time of the choice that the arm likes best, with failures and their fallback."""
    kind, offers = kinds[job.profile], Offers(arm, kinds, Goal.BALANCED)
    truth, first = Measured(kinds), offers.options(job)[0]
    left_s, wasted = truth.left_s(job, first, ()), 0.0
    if left_s is None:
        wasted, first = first.gpus * FAILS_AFTER_S, offers.retry(job, ())[0]
        left_s = (job.work or 1.0) / kind.reference_rate
    return wasted + first.gpus * (truth.startup_s(job, first) + left_s)


def steady_jct_s(kinds: Kinds, cluster: Cluster, jobs: Sequence[TraceJob], policy: Policy, arm: Arm) -> float:
    """Mean JCT of the jobs in the middle."""
    offers = Offers(arm, kinds, Goal.BALANCED)
    engine = Engine(jobs, cluster, policy, Measured(kinds), offers, SimulationSettings())
    engine.run()
    edge = int(MARGIN * len(jobs))
    runs = [engine.runs[job.job_id] for job in jobs[edge:-edge]]
    return sum((run.finished or 0.0) - run.job.submit_s for run in runs) / len(runs)


def equal_loads(kinds: Kinds, unseen: Kinds, cluster: Cluster, size: tuple[int, int]) -> None:
    """Every arm at the same share of what it could do."""
    fixed = {name: _fixed(kind) for name, kind in kinds.items()}
    arms = [(AS_SUBMITTED, kinds), *((default_of(gpus), kinds) for gpus in DEFAULTS), (PERFORMANCE, kinds)]
    arms += [(replace(PERFORMANCE, name="T, model never seen"), unseen)]
    arms += [(replace(PERFORMANCE, name="T, batch fixed"), fixed), (ORACLE, kinds)]
    for policy in (FIFO, EASY):
        for arm, known in arms:
            row = [_mean(known, cluster, policy, arm, load, size) for load in LOADS]
            print(f"{policy.name:18}{arm.name:22}", *(f"{value:>28}" for value in row), flush=True)


def _fixed(kind: Kind) -> Kind:
    default = kind.fallback()
    return kind.at_batch(default.gpus * default.batch)


def _mean(
    kinds: Kinds, cluster: Cluster, policy: Policy, arm: Arm, load: float, size: tuple[int, int]
) -> str:
    count, seeds = size
    traces = [arrivals(kinds, arm, load, count, seed, cluster.total_gpus) for seed in range(seeds)]
    return str(bootstrap_mean([steady_jct_s(kinds, cluster, jobs, policy, arm) for jobs in traces]))


def over_defaults(kinds: Kinds, cluster: Cluster, load: float, size: tuple[int, int]) -> None:
    """The gain of predictions for the same arrivals, by the default that they replace."""
    count, seeds = size
    for policy in (FIFO, EASY):
        for gpus in DEFAULTS:
            default = default_of(gpus)
            traces = [
                arrivals(kinds, default, load, count, seed, cluster.total_gpus) for seed in range(seeds)
            ]
            before, after = (
                [steady_jct_s(kinds, cluster, jobs, policy, arm) for jobs in traces]
                for arm in (default, PERFORMANCE)
            )
            change = paired_change(before, after)
            means = f"{sum(before) / seeds:>10,.0f}{sum(after) / seeds:>10,.0f}"
            print(f"{policy.name:18}default {gpus:<3}{means}  {change} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--gpu", default=GPU)
    parser.add_argument("--bundles", type=int, default=LEAST_BUNDLES, help="numbers of GPUs a kind must have")
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    rows = registry.parse(args.runs.read_text(encoding="utf-8"), shipped_catalogue())
    kinds, unseen = (
        {kind.name: kind for kind in kinds_of(rows, args.gpu, unseen=group, least_bundles=args.bundles)}
        for group in (base_of, lambda row: row.config.model_name)
    )
    for name, known in (("kind", kinds), ("model", unseen)):
        error = prediction_error(list(known.values()))
        print(
            f"{len(known)} kinds, {name} never seen: median error of predicted rates {error:.1%}", flush=True
        )
    cluster, size = parse_cluster(f"{args.gpu}:4x8"), (args.jobs, args.seeds)
    print("mean JCT in s, each arm at its own load of", *LOADS)
    equal_loads(kinds, unseen, cluster, size)
    for load in (0.5, 0.7):
        print(f"the same arrivals, load {load} by the default: JCT with it, with predictions, change")
        over_defaults(kinds, cluster, load, size)


if __name__ == "__main__":
    main()
