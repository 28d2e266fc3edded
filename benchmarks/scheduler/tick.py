"""How long one decision takes: CPU seconds, values in and values out.

python benchmarks/scheduler/tick.py [POLICY ...] [--jobs 10000] [--nodes 1000] [--json OUT]

Ranking policies decide over a queue on an empty and on a nearly full cluster. Policies that divide a whole
cluster do a round at 2,048 GPUs and 1,500 jobs, solver included.
Bars: 1 s and (Sia) 0.5 s; aims: 0.8 and (Sia) 0.4 loops of ten million additions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.scheduler.clusters import elastic, queued
from benchmarks.scheduler.yardstick import loop_s
from scheduler.core.types import ClusterState
from scheduler.rare_collections import rare_collections
from scheduler.simulator.baselines import SIMULATED

DIVIDING = ("sia", "gavel", "pollux")
ROUND_JOBS, ROUND_GPUS = 1500, 2048
REPEATS = 3


def measure(name: str, where: str, state: ClusterState) -> dict[str, Any]:
    """The best of some decisions and of as many loops beside them, and what was decided."""
    seconds, loops = [], []
    for _ in range(REPEATS):
        with rare_collections():  # as a tick does
            began = process_time()
            plan = SIMULATED[name].decide(state, float(len(state.jobs)))
            seconds.append(process_time() - began)
        loops.append(loop_s())
    kinds = Counter(type(action).__name__.lower() for action in plan.actions)
    return {"policy": name, "cluster": where, "cpu_s": round(min(seconds), 3),
            "loops": round(min(seconds) / min(loops), 2), **dict(sorted(kinds.items()))}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help=", ".join(SIMULATED))
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = args.policies or list(SIMULATED)
    if unknown := set(names) - SIMULATED.keys():
        parser.error(f"no such policy: {', '.join(sorted(unknown))}; there are {', '.join(SIMULATED)}")
    clusters = {
        "empty": queued(args.jobs, args.nodes, busy=False),
        "full": queued(args.jobs, args.nodes, busy=True),
    }
    rows = []
    for name in names:
        states = {"round": elastic(ROUND_JOBS, ROUND_GPUS)} if name in DIVIDING else clusters
        for where, state in states.items():
            rows.append(measure(name, where, state))
            print(*(f"{key} {value}" for key, value in rows[-1].items()), sep=", ", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
