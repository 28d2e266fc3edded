"""The gain of policies from knowing that a running job is about to end.

python benchmarks/scheduler/rules/hooks.py [--jobs 1000] [--error 0.2] [--traces A,B] [--policies A,B]

Policies that judge by the past alone, with and without the rule that spares jobs with less than two restarts
or 5 % of their work left (`spare_restarts`, `spare_share`). A restart costs 60 s, times left are predicted
with a median error of --error. The first so many jobs of each trace are played; changes of the mean JCT are
paired by job, with 95 % bootstrap intervals.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.scheduler.bootstrap import bootstrap_mean
from scheduler.core.policies import POLICIES
from scheduler.core.types import Policy
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.scenario import Scenario, open_scenario
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.predictions import Fidelity

FOLDER = Path(__file__).resolve().parents[3] / "tests" / "data" / "traces"
TRACES = {
    "venus": ("helios_venus/venus_sept_5000.csv.gz", "gpu:32x8"),
    "philly": ("philly/philly_2017-10-16.csv.gz", "gpu:40x8"),
}
SPARING = {"spare_restarts": 2.0, "spare_share": 0.05}
RESTART_S = 60.0


def scenario(name: str, jobs: int) -> Scenario:
    """The first so many jobs of a trace."""
    file, cluster = TRACES[name]
    whole = open_scenario(FOLDER / file, parse_cluster(cluster), None)
    return Scenario(replace(whole.trace, jobs=whole.trace.jobs[:jobs]), whole.cluster)


def sparing(policy: Policy) -> Policy:
    """The same policy with the rule."""
    if policy.rules is None:
        raise ValueError(f"{policy.name} stops nobody: it has no rules to change")
    rules = replace(policy.rules, **SPARING)  # type: ignore[type-var]
    changed: Policy = replace(policy, rules=rules)  # type: ignore[type-var]
    return changed


def played(of: Scenario, policy: Policy, error: float, seed: int) -> tuple[dict[str, float], int]:
    """The JCT of each job, and how often jobs were stopped for others."""
    settings = SimulationSettings(restart_s=RESTART_S)
    engine, metrics = of.simulate(policy, Fidelity.PERFORMANCE, settings, error=error, seed=seed)
    jct = {run.job.job_id: run.finished - run.job.submit_s for run in engine.runs.values() if run.finished}
    return jct, metrics.preemptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--error", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--traces", default=",".join(TRACES))
    parser.add_argument("--policies", default="las,tiresias,gittins")
    args = parser.parse_args()
    print("| trace | policy | mean JCT, s | with the rule | change, % | stops | with the rule |")
    for trace in args.traces.split(","):
        of = scenario(trace, args.jobs)
        for name in args.policies.split(","):
            before, stops = played(of, POLICIES[name], args.error, args.seed)
            after, fewer = played(of, sparing(POLICIES[name]), args.error, args.seed)
            mean = bootstrap_mean(list(before.values())).mean
            change = bootstrap_mean(
                [100 * (after[job] - before[job]) / mean for job in before if job in after]
            )
            row = (
                trace, name, f"{mean:,.0f}", f"{bootstrap_mean(list(after.values())).mean:,.0f}",
                f"{change.mean:+.2f} [{change.low:+.2f}, {change.high:+.2f}]", f"{stops:,}", f"{fewer:,}",
            )  # fmt: skip
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
