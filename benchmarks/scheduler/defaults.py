"""What to choose when: policies on public traces where jobs wait, and what the defaults were before.

python -m benchmarks.scheduler.defaults [--parts 4] [--jobs 600] [--loads 0.6 0.8] [--traces venus philly pai]
    [--policies NAME ...] [--json OUT]

Parts of three public traces on 64 GPUs (8 x 8), their arrivals drawn together until the cluster has that
load; durations are known with a median error of 25 %, and a restart costs 60 s. A part is played under every
policy, so that ratios compare the same jobs. NAME is a policy, `NAME+reserve` with a reservation for the
first job that waits, `fair+models` with the rule under which a job that waits keeps its GPU models. Printed:
the mean completion time over that of `easy` (the geometric mean over parts), Jain's index over the mean
speeds of users (the mean over parts), the 95th percentile of the completion time over that of `easy`, and
stops per hundred jobs where there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.scheduler.ahead.worlds import ERROR, FILES, RESTART_S, Part, opened
from scheduler.core.cycle.options import HeadOfLine
from scheduler.core.policies import POLICIES
from scheduler.core.policies.fair_share import FAIR
from scheduler.core.policies.parameters import RESERVE, with_parameters
from scheduler.core.types import Policy
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.predictions import Fidelity

BASE = "easy"
CHOSEN = (
    "fifo", "fair+models", "easy", "fair", "fair+reserve", "fifo-backfill", "sjf", "sjf+reserve", "lucid",
    "lucid+reserve", "srtf", "las", "tiresias", "uwfq",
)  # fmt: skip


def policy_of(name: str) -> Policy:
    """The policy of a name with its ending."""
    plain, _, how = name.partition("+")
    if how == "models" and plain == FAIR.name:
        return replace(FAIR, rules=replace(FAIR.rules, blocks=HeadOfLine.MODELS))
    return with_parameters(POLICIES[plain], {RESERVE.name: True} if how else {})


def play(trace: str, load: float, part: Part, jobs: int, name: str) -> dict[str, Any]:
    """The figures of one part of a trace under one policy."""
    policy, began = policy_of(name), process_time()
    world = opened(trace, load, jobs, policy, part)
    _, metrics = world.scenario.simulate(
        policy, Fidelity.PERFORMANCE, SimulationSettings(restart_s=RESTART_S), error=ERROR, seed=world.seed
    )
    return {
        "trace": trace, "load": load, "part": part.number, "policy": name,
        "jobs": len(world.scenario.trace.jobs), "jct_s": metrics.jct_mean_s, "jct_p95_s": metrics.jct_p95_s,
        "jain": metrics.jain, "stops": metrics.preemptions, "cpu_s": round(process_time() - began, 2),
    }  # fmt: skip


def table(rows: Iterable[Mapping[str, Any]], policies: Sequence[str]) -> str:
    """A row for each policy, and the same four columns for each trace and load."""
    found = {(row["policy"], row["trace"], row["load"], row["part"]): row for row in rows}
    places = sorted({key[1:] for key in found})
    worlds = list(dict.fromkeys(place[:2] for place in places))
    lines = [
        "| policy | " + " | ".join(f"{trace} {load:g}" for trace, load in worlds) + " | all |",
        "| --- |" + " --- |" * (len(worlds) + 1),
    ]
    for name in policies:
        cells = [_cell(found, name, [place for place in places if place[:2] == world]) for world in worlds]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {_cell(found, name, places)} |")
    return "\n".join(lines)


def _cell(found: Mapping[Any, Mapping[str, Any]], name: str, places: Sequence[Any]) -> str:
    own = [found[name, *place] for place in places]
    base = [found[BASE, *place] for place in places]

    def ratio(figure: str) -> float:
        pairs = zip(own, base, strict=True)
        return exp(mean(log(one[figure] / other[figure]) for one, other in pairs))

    stops = 100 * sum(one["stops"] for one in own) / sum(one["jobs"] for one in own)
    text = f"{ratio('jct_s'):.2f}, {mean(one['jain'] for one in own):.2f}, {ratio('jct_p95_s'):.2f}"
    return f"{text}, {stops:.0f}" if stops else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.6, 0.8])
    parser.add_argument("--traces", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--policies", nargs="+", default=list(CHOSEN))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    policies = list(dict.fromkeys([*args.policies, BASE]))
    rows = []
    for trace in args.traces:
        for load in args.loads:
            for number in range(args.parts):
                for name in policies:
                    rows.append(play(trace, load, Part(number, args.parts), args.jobs, name))
                    print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(table(rows, policies))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
