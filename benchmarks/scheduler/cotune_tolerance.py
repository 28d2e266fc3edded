"""How much worse than its best option a job should accept rather than wait.

python benchmarks/scheduler/cotune_tolerance.py RUNS.CSV [--jobs 100] [--seeds 20] [--goal balanced]
    [--json OUT]

The tolerance is chosen on some jobs and judged on others. The jobs, cluster and truth are those
of benchmarks/scheduler/cotune.py at the level `performance`. The kinds are split into two halves that
share no model; each half has its own seeds of arrivals. The tolerance with the lowest geometric
mean of the JCT over policies, loads and seeds is chosen on one half and judged on the other,
and the other way round. Results: docs/simulator.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.scheduler.bootstrap import paired_change
from benchmarks.scheduler.cotune import DEFAULT, LOADS, PERFORMANCE, jobs_of, play
from benchmarks.scheduler.cotune_jobs import Kind, kinds_of
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import registry
from knowledge.core.domain.types import Goal
from scheduler.core.types import Policy
from scheduler.simulator.baselines import SIMULATED

TOLERANCES = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
SETTLED = 1.25  # CoTune's
SEEDS_OF_B = 1_000  # where the seeds of half B begin; those of A begin at 0
NAMES = ("fifo-distributed", "fifo", "fifo-backfill", "easy", "sjf", "lucid")
Half = tuple[Sequence[Kind], int]  # its kinds, its first seed


def halves(kinds: Sequence[Kind]) -> tuple[Half, Half]:
    """Two halves without a common model: models by falling number of kinds, in turns."""
    of_model: dict[str, list[Kind]] = defaultdict(list)
    for kind in kinds:
        of_model[kind.name.split("|")[0]].append(kind)
    ordered = sorted(of_model, key=lambda model: (-len(of_model[model]), model))
    first, second = ([kind for model in ordered[at::2] for kind in of_model[model]] for at in (0, 1))
    return (first, 0), (second, SEEDS_OF_B)


def tolerant(name: str, tolerance: float) -> Policy:
    policy: Any = SIMULATED[name]
    changed: Policy = replace(policy, rules=replace(policy.rules, tolerance=tolerance))
    return changed


def jcts(half: Half, policy: Policy, size: tuple[int, int], goal: Goal) -> dict[float, list[float]]:
    """Mean JCT of each seed, by load."""
    (kinds, first), (count, seeds) = half, size
    return {
        load: [
            play(kinds, jobs_of(kinds, count, load, seed), policy, PERFORMANCE, goal).jct_mean_s
            for seed in range(first, first + seeds)
        ]
        for load in LOADS
    }


def choose(half: Half, size: tuple[int, int], goal: Goal) -> tuple[float, dict[float, float]]:
    """The best tolerance over all policies, and the geometric mean JCT of each (s)."""
    scores = {}
    for tolerance in TOLERANCES:
        found = [jcts(half, tolerant(name, tolerance), size, goal) for name in NAMES]
        logs = [math.log(jct) for by_load in found for values in by_load.values() for jct in values]
        scores[tolerance] = math.exp(fmean(logs))
    return min(scores, key=scores.__getitem__), scores


def judge(half: Half, tolerance: float, size: tuple[int, int], goal: Goal) -> list[dict[str, Any]]:
    """Compare a tolerance with the settled one and with one default configuration.

    The changes of the JCT are in %, by policy and load.
    """
    kinds, first = half
    rows = []
    for name in NAMES:
        before = jcts(half, tolerant(name, SETTLED), size, goal)
        after = jcts(half, tolerant(name, tolerance), size, goal)
        for load in LOADS:
            traces = [jobs_of(kinds, size[0], load, seed) for seed in range(first, first + size[1])]
            base = [play(kinds, jobs, SIMULATED[name], DEFAULT, goal).jct_mean_s for jobs in traces]
            row = {
                "policy": name, "load": load, "tolerance": tolerance,
                "jct_settled_s": fmean(before[load]), "jct_s": fmean(after[load]),
                "vs_settled": str(paired_change(before[load], after[load])),
                "settled_vs_default": str(paired_change(base, before[load])),
                "vs_default": str(paired_change(base, after[load])),
            }  # fmt: skip
            print("   ", *(f"{value:,.6g}" if isinstance(value, float) else value for value in row.values()))
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--goal", type=Goal, default=Goal.BALANCED)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    size, results = (args.jobs, args.seeds), []
    a, b = halves(kinds_of(registry.parse(args.runs.read_text(encoding="utf-8"), shipped_catalogue())))
    for name, chosen_on, judged_on in (("chosen on A", a, b), ("chosen on B", b, a)):
        best, scores = choose(chosen_on, size, args.goal)
        print(name, best, {one: round(score) for one, score in scores.items()}, flush=True)
        rows = judge(judged_on, best, size, args.goal)
        results.append({"split": name, "best": best, "scores": scores, "judged": rows})
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
