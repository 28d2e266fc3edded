"""The gain of policies from similar jobs, in the simulator.

python benchmarks/scheduler/rules/advice.py [--jobs 800] [--traces A,B] [--lines A,B]

Each line plays the first so many jobs of a trace twice, without and with what earlier jobs of the kind
(twice) or similar ones (`neighbours`) took; a restart costs 60 s. `lucid`: orders by it instead of one
stated duration. `lucid profiled`: a profiling run of 200 s for every job, or only for those of which
nothing is known. `tiresias`: jobs that are about to end by it are spared, or nobody is. `sia`, `pollux`: it
gives a job's first options. Changes of the mean JCT are paired by job, with 95 % bootstrap intervals. These
traces name neither people nor models, so that jobs of one size, and of one group where there are groups,
are neighbours.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.scheduler.bootstrap import bootstrap_mean
from benchmarks.scheduler.rules.hooks import RESTART_S, TRACES, scenario, sparing
from scheduler.core.policies import POLICIES
from scheduler.core.types import Policy
from scheduler.simulator.scenario import Scenario
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.predictions import Fidelity

PROFILE_S = 200.0


class Play(NamedTuple):
    """A policy, what it knows, and how long unknown jobs are profiled."""

    policy: Policy
    level: Fidelity
    profile_s: float = 0.0


NOTHING, NEIGHBOURS = Fidelity.DEFAULT, Fidelity.NEIGHBOURS
LINES: dict[str, tuple[Play, Play]] = {
    "lucid": (Play(POLICIES["lucid"], NOTHING), Play(POLICIES["lucid"], NEIGHBOURS)),
    "lucid profiled": (
        Play(POLICIES["lucid"], NOTHING, PROFILE_S), Play(POLICIES["lucid"], NEIGHBOURS, PROFILE_S)
    ),
    "tiresias": (
        Play(POLICIES["tiresias"], NEIGHBOURS), Play(sparing(POLICIES["tiresias"]), NEIGHBOURS)
    ),
    "sia": (Play(POLICIES["sia"], NOTHING), Play(POLICIES["sia"], NEIGHBOURS)),
    "pollux": (Play(POLICIES["pollux"], NOTHING), Play(POLICIES["pollux"], NEIGHBOURS)),
}  # fmt: skip


def played(of: Scenario, play: Play) -> tuple[dict[str, float], int, int]:
    """The JCT of each job, how often jobs were stopped for others, and how often they started again."""
    settings = SimulationSettings(restart_s=RESTART_S)
    engine, metrics = of.simulate(play.policy, play.level, settings, profile_s=play.profile_s)
    jct = {run.job.job_id: run.finished - run.job.submit_s for run in engine.runs.values() if run.finished}
    return jct, metrics.preemptions, metrics.restarts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=800)
    parser.add_argument("--traces", default=",".join(TRACES))
    parser.add_argument("--lines", default=",".join(LINES))
    args = parser.parse_args()
    print("| trace | policy | mean JCT, s | with it | change, % | stops | restarts | CPU s |")
    for trace in args.traces.split(","):
        of = scenario(trace, args.jobs)
        for line in args.lines.split(","):
            began = time.process_time()
            without, with_it = LINES[line]
            before, stops, starts = played(of, without)
            after, fewer, again = played(of, with_it)
            mean = bootstrap_mean(list(before.values())).mean
            change = bootstrap_mean(
                [100 * (after[job] - before[job]) / mean for job in before if job in after]
            )
            row = (
                trace, line, f"{mean:,.0f}", f"{bootstrap_mean(list(after.values())).mean:,.0f}",
                f"{change.mean:+.2f} [{change.low:+.2f}, {change.high:+.2f}]", f"{stops:,}, {fewer:,}",
                f"{starts:,}, {again:,}", f"{time.process_time() - began:.0f}",
            )  # fmt: skip
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
