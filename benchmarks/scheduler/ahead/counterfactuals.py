"""Do the changes offered to a waiting job bring the start that they promise?

    python -m benchmarks.scheduler.ahead.counterfactuals [--jobs 300] [--moments 8] [--policies fifo ...]

Plays public traces on 8 nodes of 8 GPUs by the simulator, as `start_times` does. At random moments it takes
some of the jobs that wait, finds the changes that help (`scheduler.core.changes`) as the worker of the queue
`predict` does, and then plays the trace again, once for each change of the job itself, with that change from
the moment on. It prints

- of how many changes the start lies inside the 80 % interval that was promised (aim 80 %),
- with how many the job starts later than without the change (aim at most 2 %),
- by how much it starts sooner in the median, as promised and really, and CPU seconds for one job.

A job may run on a quarter, half or twice the GPUs that it asked for, GPUs ** 0.85 times as fast. Predicted
durations are off by 25 % in the median, and what running jobs have left by 12 %. Intervals are as played. One
seed; changes of one moment share their luck.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from benchmarks.scheduler.ahead.worlds import ERROR, RESTART_S, Part, World, opened
from knowledge.core.domain.types import Option
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.helpful import HelpfulChange, helpful_changes
from scheduler.core.changes.possible import OpenOptions, possible_changes
from scheduler.core.changes.trying import try_changes
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, JobInfo, Plan, Policy, Start
from scheduler.services.forecasts.cpu_budget import CpuBudget
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import RecordedTruth, Shares, Throughput
from scheduler.simulator.world.predictions import Fidelity, PredictionModel
from scheduler.states import PriorityClass

SPEED_UP = 0.85  # speed is so many GPUs to this power
SIZES = (0.25, 0.5, 2.0)  # of the GPUs that a job asked for
JOBS_OF_A_MOMENT = 2
LATER_S = 1.0


class Kept(NamedTuple):
    """A change, and when the job started with it and without it, in s after `now`."""

    change: HelpfulChange
    now: float
    start: float
    without: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--moments", type=int, default=8)
    parser.add_argument("--cpu-s", type=float, default=4.0)
    parser.add_argument("--traces", nargs="+", default=["venus", "philly", "pai"])
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--policies", nargs="+", default=["fifo", "easy", "sjf", "tiresias"])
    given = parser.parse_args()
    print("| policy | trace | changes | inside | later | sooner, promised | really | CPU s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for policy in given.policies:
        for trace in given.traces:
            world = opened(trace, given.load, given.jobs, POLICIES[policy], Part(0, 1))
            asked = list(looked_at(world, given.moments, given.cpu_s))
            print(f"| `{policy}` | {trace} | {summary(asked)} |", flush=True)


@dataclass(slots=True)
class Asked:
    """What was found for one job."""

    kept: list[Kept]
    cpu_s: float


def looked_at(world: World, moments: int, cpu_s: float) -> Iterator[Asked]:
    for number, known in enumerate(list(world.play(moments))):
        rng = random.Random(number)
        waits = [job for job in known.waiting if (world.next_start(job.id, known.now) or 0) > known.now + 60]
        for job in rng.sample(waits, min(JOBS_OF_A_MOMENT, len(waits))):
            began = time.thread_time()
            found = changes_for(known, job, cpu_s)
            took_s = time.thread_time() - began
            yield Asked([_kept(world, known, job, one) for one in found], took_s)


def changes_for(known: PlayInput, job: JobInfo, cpu_s: float) -> list[HelpfulChange]:
    """Those that are changes of the job itself."""
    anywhere = (*job.options, *(stretched(job.options[0], size) for size in SIZES))
    whole = tuple(option for option in anywhere if option.gpus >= 1)
    possible = possible_changes(known, job, OpenOptions(anywhere=whole))
    own = [one for one in possible if one.change]
    trials = try_changes(known, job.id, own, CpuBudget(cpu_s).share)
    return helpful_changes(trials, job.id, known.now)


def stretched(option: Option, size: float) -> Option:
    """The option on more or fewer GPUs, on as many nodes as those need."""
    gpus = int(option.gpus * size)
    config = replace(option.config, number_gpus=gpus, number_nodes=max(1, -(-gpus // 8)))
    return replace(option, config=config, duration_s=option.duration_s.scaled(_slower(option.gpus, gpus)))


def _slower(asked: int, gpus: int) -> float:
    return (asked / gpus) ** SPEED_UP if gpus else 1.0


class Stretching(RecordedTruth):
    """Jobs run on other numbers of GPUs than they asked for as well."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        if job.duration_s is None:
            return None
        return Throughput(1 / (job.duration_s * _slower(job.whole_gpus, option.gpus)))


class Started(Exception):
    """The job has started; nothing more is asked."""


class ChangedPolicy:
    """A policy that is shown one job otherwise from a moment on."""

    def __init__(self, inner: Policy, job: str, change: HelpfulChange, now: float) -> None:
        self.inner, self.job, self.change, self.now = inner, job, change, now
        self.start: float | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def decide(self, state: ClusterState, now: float) -> Plan:
        if now < self.now:
            return self.inner.decide(state, now)
        jobs = tuple(self._changed(job) if job.id == self.job else job for job in state.jobs)
        shown = ClusterState(jobs=jobs, nodes=state.nodes, memory=state.memory, explain=False)
        plan = self.inner.decide(shown, now)
        if any(isinstance(action, Start) and action.job == self.job for action in plan.actions):
            self.start = now
            raise Started
        return plan

    def _changed(self, job: JobInfo) -> JobInfo:
        if word := self.change.change.get("priority"):
            return replace(job, priority=PriorityClass.of_word(word))
        option = self.change.option
        return replace(job, options=(option,)) if option and "params" in self.change.change else job


def _kept(world: World, known: PlayInput, job: JobInfo, change: HelpfulChange) -> Kept:
    """Play the trace again with the change."""
    policy = ChangedPolicy(world.policy, job.id, change, known.now)
    cluster, jobs = world.scenario.cluster, world.scenario.trace.jobs
    truth = Stretching()
    predictions = PredictionModel(
        Fidelity.PERFORMANCE,
        world.scenario.truth(Fidelity.PERFORMANCE),
        cluster,
        error=ERROR,
        seed=world.seed,
    )
    engine = Engine(jobs, cluster, policy, truth, predictions, SimulationSettings(restart_s=RESTART_S))
    with suppress(Started):
        engine.run()
    without = world.next_start(job.id, known.now)
    if policy.start is None or without is None:
        raise AssertionError(f"{job.id} never started")
    return Kept(change, known.now, policy.start - known.now, without - known.now)


def summary(asked: list[Asked]) -> str:
    kept = [one for each in asked for one in each.kept]
    if not kept:
        return "0 | | | | |"
    inside = sum(_inside(one) for one in kept)
    later = sum(one.start > one.without + LATER_S for one in kept)
    promised = median(one.change.sooner_s or 0.0 for one in kept)
    really = median(one.without - one.start for one in kept)
    cells = [
        str(len(kept)),
        f"{inside / len(kept):.0%}",
        f"{later / len(kept):.1%}",
        f"{promised:,.0f} s",
        f"{really:,.0f} s",
        f"{sum(one.cpu_s for one in asked) / len(asked):.1f}",
    ]
    return " | ".join(cells)


def _inside(one: Kept) -> bool:
    promised = one.change.forecast.start
    low, high = (promised.low or 0.0) - one.now, None if promised.high is None else promised.high - one.now
    return low - LATER_S <= one.start and (high is None or one.start <= high + LATER_S)


if __name__ == "__main__":
    main()
