"""CoTune's claim, measured: the JCT saved by filling in configurations.

python benchmarks/scheduler/cotune.py RUNS.CSV [--jobs 100] [--seeds 20] [--sia-seeds 20] [--json OUT]

Measures how much lower the JCT gets once predicted knowledge fills in configurations. Protocol
and results: docs/simulator.md. One pool of 4 nodes of 8 A100, work fixed in tokens, the same
scheduler in all arms, true rates from measured rows that no predictor saw; failures cost their
time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.scheduler.bootstrap import paired_change
from benchmarks.scheduler.cotune_jobs import GPU, Choice, Kind, Shape, best, kinds_of, prediction_error
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import registry
from knowledge.core.domain.types import Config, Goal, Interval, Option, Source
from knowledge.core.predict.base import MIN_P_VALID
from scheduler.core.placement.fit import Shares
from scheduler.core.policies import POLICIES
from scheduler.core.types import Policy
from scheduler.simulator.baselines.first_come import DISTRIBUTED
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.metrics import Metrics, measure
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import GroundTruth, Throughput
from scheduler.simulator.world.predictions import lognormal_sigma

CLUSTER = parse_cluster(f"{GPU}:4x8")
LOADS = (0.5, 0.7, 0.9, 1.1)
ERRORS = (0.0, 0.05, 0.1, 0.2, 0.4)
WORK_S, WORK_SIGMA = 1800.0, 1.0  # the work takes the reference a lognormal time: median, spread of ln
STARTUP_S, FAILS_AFTER_S = 60.0, 180.0  # loading the model; until an option that does not fit has failed
SIA_ROUND_S = 300.0
FIFO, EASY, SIA = DISTRIBUTED, POLICIES["easy"], POLICIES["sia"]
# CoTune's own rule: waits unless what is free is nearly the best (docs/adr/0006)
PATIENT = replace(FIFO, name="fifo, tolerance 1.25", rules=replace(FIFO.rules, tolerance=1.25))


@dataclass(frozen=True, slots=True)
class Measured(GroundTruth):
    """The truth: the measured rate of a kind's choice."""

    kinds: Mapping[str, Kind]

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        choice = self.kinds[job.profile].choices.get(shape_of(option.config))
        return Throughput(choice.rate / (job.work or 1.0)) if choice and choice.rate > 0 else None

    def startup_s(self, job: TraceJob, option: Option) -> float:
        return STARTUP_S

    def fails_after_s(self, job: TraceJob, option: Option) -> float:
        return FAILS_AFTER_S


@dataclass(frozen=True, slots=True)
class Arm:
    """Which choices a job is offered, at which rates; a single one is not negotiable."""

    name: str
    offer: Callable[[Kind, TraceJob], dict[Shape, float]]


@dataclass(frozen=True, slots=True)
class Offers:
    """The options that policies are given in an arm.

    After a failure, only the fallback is offered.
    """

    arm: Arm
    kinds: Mapping[str, Kind]
    goal: Goal

    def options(self, job: TraceJob, done: float = 0.0) -> tuple[Option, ...]:
        kind = self.kinds[job.profile]
        offered = self.arm.offer(kind, job)
        made = [option(kind.choices[shape].config, job, rate) for shape, rate in offered.items()]
        made.sort(key=lambda one: (one.score(self.goal), one.key))
        return tuple(made)

    def retry(self, job: TraceJob, left: tuple[Option, ...]) -> tuple[Option, ...]:
        """After a failure: the fallback, whatever the arm knows."""
        kind = self.kinds[job.profile]
        choice = kind.choices[kind.fallback()]
        return (option(choice.config, job, choice.rate),)

    def learn(self, job: TraceJob, option: Option, duration_s: float) -> None: ...


def option(config: Config, job: TraceJob, rate: float) -> Option:
    duration_s = STARTUP_S + (job.work or 1.0) / rate
    return Option(
        config=config, p_valid=1.0, tokens_per_second=Interval(rate), peak_memory_bytes=Interval(0.0),
        startup_s=STARTUP_S, duration_s=Interval(duration_s), cost=Interval(0.0), source=Source.MODEL,
    )  # fmt: skip


def shape_of(config: Config) -> Shape:
    return Shape(config.number_gpus, config.number_nodes, config.per_device_batch_size)


def one(pick: Callable[[Kind, TraceJob], Shape]) -> Callable[[Kind, TraceJob], dict[Shape, float]]:
    """Return the offer of one fixed configuration.

    Its rate is unknown, so the promise is that of a job of median work.
    """
    return lambda kind, job: {pick(kind, job): (job.work or 1.0) / 3600.0}


def many(rate: Callable[[Choice, TraceJob], float]) -> Callable[[Kind, TraceJob], dict[Shape, float]]:
    """The best choice of each bundle by what is known; the default where nothing is."""

    def offer(kind: Kind, job: TraceJob) -> dict[Shape, float]:
        known = best(kind, lambda choice: rate(choice, job))
        rates = {shape: rate(kind.choices[shape], job) for shape in known.values()}
        return rates or one(lambda kind, _: kind.default())(kind, job)

    return offer


def _submitted(kind: Kind, job: TraceJob) -> Shape:
    return kind.submitted(random.Random(job.job_id))


def _predicted(choice: Choice, _: TraceJob) -> float:
    return choice.predicted if choice.p_valid >= MIN_P_VALID else 0.0


def _exact(kind: Kind, job: TraceJob) -> dict[Shape, float]:
    """Another choice than the default only where both were measured before."""
    if kind.choices[kind.default()].exact is None:
        return one(lambda kind, _: kind.default())(kind, job)
    return many(lambda choice, _: choice.exact or 0.0)(kind, job)


def _linear(kind: Kind, _: TraceJob) -> dict[Shape, float]:
    """Return rates by Sia's bootstrap.

    Each type was tried on the fewest GPUs; larger sizes are assumed to scale linearly.
    """
    found = best(kind, lambda choice: choice.rate)
    first = min(found.values())
    per_gpu = kind.choices[first].rate / first.gpus
    return {shape: per_gpu * shape.gpus for shape in found.values()}


def noisy(error: float) -> Arm:
    """The truth with a lognormal error on the rates."""
    sigma = lognormal_sigma(error) if error else 0.0

    def rate(choice: Choice, job: TraceJob) -> float:
        rng = random.Random(f"{job.job_id}/{shape_of(choice.config)}")
        return choice.rate * math.exp(sigma * rng.gauss())

    return Arm(f"oracle, error {error:.0%}", many(rate))


AS_SUBMITTED = Arm("as submitted (B0)", one(_submitted))
DEFAULT = Arm("default (B1)", one(lambda kind, _: kind.default()))
VALIDITY = Arm("validity", one(lambda kind, _: kind.likely(kind.default())))
EXACT = Arm("exact", _exact)
PERFORMANCE = Arm("performance (T)", many(_predicted))
ORACLE = Arm("oracle (O)", many(lambda choice, _: choice.rate))
LINEAR = Arm("1-GPU bootstrap (S0)", _linear)
RIGID_ARMS = (AS_SUBMITTED, DEFAULT, VALIDITY, EXACT, PERFORMANCE, ORACLE)
SIA_ARMS = (AS_SUBMITTED, DEFAULT, LINEAR, EXACT, PERFORMANCE, ORACLE)


def jobs_of(kinds: Sequence[Kind], count: int, load: float, seed: int) -> list[TraceJob]:
    """Return Poisson arrivals whose GPU time under B0 offers this load.

    The jobs' works and kinds depend on the seed alone.
    """
    rng = random.Random(seed)
    drawn = []
    for number in range(count):
        kind = rng.choice(kinds)
        work = kind.reference_rate * WORK_S * math.exp(WORK_SIGMA * rng.gauss())
        drawn.append(TraceJob(job_id=f"{seed}-{number}", submit_s=0.0, gpus=1, profile=kind.name, work=work))
    by_name = {kind.name: kind for kind in kinds}
    gap_s = sum(_gpu_s(by_name[job.profile], job) for job in drawn) / count / load / CLUSTER.total_gpus
    at, placed = 0.0, []
    for job in drawn:
        placed.append(replace(job, submit_s=at))
        at += rng.expovariate(1.0 / gap_s)
    return placed


def _gpu_s(kind: Kind, job: TraceJob) -> float:
    """GPU time under B0, failures and their fallback included."""
    shape = _submitted(kind, job)
    failed = kind.choices[shape].rate <= 0
    spent = shape.gpus * FAILS_AFTER_S if failed else 0.0
    run = kind.fallback() if failed else shape
    return spent + run.gpus * (STARTUP_S + (job.work or 1.0) / kind.choices[run].rate)


def play(kinds: Sequence[Kind], jobs: Sequence[TraceJob], policy: Policy, arm: Arm, goal: Goal) -> Metrics:
    by_name = {kind.name: kind for kind in kinds}
    truth, offers = Measured(by_name), Offers(arm, by_name, goal)
    settings = SimulationSettings(goal=goal, round_s=SIA_ROUND_S if policy is SIA else None)
    engine = Engine(jobs, CLUSTER, policy, truth, offers, settings)
    engine.run()
    runs = list(engine.runs.values())
    return measure(
        engine, runs, [(run.job.work or 1.0) / by_name[run.job.profile].reference_rate for run in runs]
    )


def compare(
    kinds: Sequence[Kind], arms: Iterable[Arm], policy: Policy, load: float, goal: Goal, size: tuple[int, int]
) -> list[dict[str, Any]]:
    """Compare every arm on the same jobs, seed by seed.

    Changes are against the first two arms.
    """
    count, seeds = size
    traces = [jobs_of(kinds, count, load, seed) for seed in range(seeds)]
    rows: list[dict[str, Any]] = []
    jcts: list[list[float]] = []
    for arm in arms:
        found = [play(kinds, jobs, policy, arm, goal) for jobs in traces]
        jcts.append([metrics.jct_mean_s for metrics in found])
        means = {
            name: sum(getattr(metrics, name) for metrics in found) / seeds
            for name in ("jct_mean_s", "jct_p50_s", "jct_p99_s", "wait_mean_s", "makespan_s", "gpu_hours",
                         "failures", "restarts", "failed", "unfinished")
        }  # fmt: skip
        bases = jcts[: len(jcts) - 1][:2]
        changes = {f"vs_b{number}": str(paired_change(base, jcts[-1])) for number, base in enumerate(bases)}
        rows.append(
            {"policy": policy.name, "goal": str(goal), "load": load, "arm": arm.name, **means, **changes}
        )
        print(_line(rows[-1]), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['policy']:21}{row['goal']:9}{row['load']:4.1f} {row['arm']:21}{row['jct_mean_s']:>10,.0f}"
        f"{row['wait_mean_s']:>10,.0f}{row['jct_p99_s']:>11,.0f}{row['gpu_hours']:>8,.0f}{row['failures']:>6.1f}"
        f"  B0 {row.get('vs_b0', '-'):24} B1 {row.get('vs_b1', '-')}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sia-seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    kinds = kinds_of(registry.parse(args.runs.read_text(encoding="utf-8"), shipped_catalogue()))
    print(f"{len(kinds)} kinds, median error of predicted rates {prediction_error(kinds):.1%}", flush=True)
    size, rows = (args.jobs, args.seeds), []
    for load in LOADS:
        rows += compare(kinds, RIGID_ARMS, FIFO, load, Goal.BALANCED, size)
        rows += compare(kinds, RIGID_ARMS, PATIENT, load, Goal.BALANCED, size)
        rows += compare(kinds, RIGID_ARMS, EASY, load, Goal.BALANCED, size)
        rows += compare(kinds, SIA_ARMS, SIA, load, Goal.BALANCED, (args.jobs, args.sia_seeds))
    rows += compare(kinds, RIGID_ARMS, FIFO, 0.9, Goal.FASTEST, size)
    rows += compare(kinds, [AS_SUBMITTED, DEFAULT, *map(noisy, ERRORS)], FIFO, 0.9, Goal.BALANCED, size)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
