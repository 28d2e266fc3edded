"""How fast the simulator is, beside public ones on the same traces.

python benchmarks/scheduler/simulator.py [--traces FOLDER] [--json OUT]

Each line is a process of its own, so that its peak memory is its own; CPU seconds cover reading the trace,
the simulation and the measures. The peers' figures were measured on 2 shared cores (docs/simulator.md).
Bars: Philly under FIFO in 10 CPU s, with backfill in 30, Sia's workload in 20, 300 MB. A loop is ten
million additions on the same machine; aims: Philly FIFO 7 loops, EASY 20, Sia's workload 12.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SIA = "aws:6x4,rtx:3x8,dgx-ext:2x8"


@dataclass(frozen=True, slots=True)
class Line:
    """One simulation beside the peer's result on the same trace.

    Both give CPU seconds and mean JCT.
    """

    trace: str
    cluster: str
    policy: str
    knowledge: str
    peer: str
    peer_cpu_s: float
    peer_jct_s: float
    bar_s: float | None = None


VENUS, PHILLY = "helios_venus/bench_venus_sept_5000.csv.gz", "philly/philly_jobs.csv.gz"
POLLUX = "pollux_osdi21/workloads/workload-6.csv"
LINES = (
    Line(VENUS, "gpu:90x8", "fifo-strict", "oracle", "Kavier", 0.15, 20_555.5),
    Line(VENUS, "gpu:90x8", "fifo-distributed", "oracle", "Kavier", 0.10, 17_265.6),
    Line(VENUS, "gpu:64x8", "fifo-strict", "oracle", "Kavier", 0.2, 102_642.9),
    Line(VENUS, "gpu:90x8", "fifo-backfill", "oracle", "Kavier", 1.83, 9_563.9),
    Line(VENUS, "gpu:90x8", "sjf", "oracle", "Lucid", 27.2, 9_230.2),
    Line(VENUS, "gpu:90x8", "srtf", "oracle", "Lucid", 39.7, 8_426.9),
    Line(VENUS, "gpu:90x8", "lucid", "performance", "Lucid (QSSF, EBM)", 30.0, 9_040.0),
    Line(PHILLY, "gpu:100x8", "fifo-strict", "oracle", "Kavier", 1.98, 14_611.0, 10.0),
    Line(PHILLY, "gpu:100x8", "fifo-distributed", "oracle", "Kavier", 1.33, 14_383.8, 10.0),
    Line(PHILLY, "gpu:100x8", "fifo-backfill", "oracle", "Kavier", 29.3, 14_157.3, 30.0),
    Line(PHILLY, "gpu:100x8", "easy", "oracle", "Kavier (no reservation)", 29.3, 14_157.3, 30.0),
    Line(POLLUX, "gpu:16x4", "tiresias-adaptdl", "default", "AdaptDL", 10.6, 3_469.7),
    Line("sia/workloads/philly/workload-1.csv", SIA, "sia", "oracle", "Sia", 180.5, 1_949.8, 20.0),
)  # fmt: skip
PEAK_MB = 300.0


def play(line: Line, traces: Path) -> dict[str, Any]:
    """One simulation in this process."""
    import resource

    from benchmarks.scheduler.yardstick import loop_s
    from scheduler.simulator.inputs.cluster import parse_cluster
    from scheduler.simulator.redirect_stdout import stdout_for_results
    from scheduler.simulator.scenario import open_scenario, policy_named
    from scheduler.simulator.world.predictions import Fidelity

    began = process_time()
    scenario = open_scenario(traces / line.trace, parse_cluster(line.cluster))
    with stdout_for_results():
        _, metrics = scenario.simulate(policy_named(line.policy), Fidelity(line.knowledge))
    cpu_s = process_time() - began
    return {
        **asdict(line),
        "jobs": len(scenario.trace.jobs),
        "cpu_s": cpu_s,
        "loops": cpu_s / loop_s(),
        "jct_s": metrics.jct_mean_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "data" / "traces")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--line", type=int, help=argparse.SUPPRESS)  # how a process is told its part
    args = parser.parse_args()
    if args.line is not None:
        print(json.dumps(play(LINES[args.line], args.traces)))
        return 0
    if not args.traces.exists():
        parser.error(f"{args.traces} is not here; name the traces' folder with --traces")
    rows = []
    print(
        "policy               jobs   CPU s  loops   peer   jobs/s     peer      JCT s       peer    MB  peer"
    )
    for number in range(len(LINES)):
        command = [sys.executable, __file__, "--traces", str(args.traces), "--line", str(number)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(_sentence(rows[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")
    slow = [row["policy"] for row in rows if not _keeps_its_bar(row)]
    print(f"over a bar: {', '.join(slow)}" if slow else "all bars kept")
    return bool(slow)


def _keeps_its_bar(row: dict[str, Any]) -> bool:
    return row["peak_mb"] <= PEAK_MB and (row["bar_s"] is None or row["cpu_s"] <= row["bar_s"])


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"{row['policy']:18}{row['jobs']:>7,}{row['cpu_s']:>8.2f}{row['loops']:>7.1f}{row['peer_cpu_s']:>7.2f}"
        f"{row['jobs'] / row['cpu_s']:>9,.0f}{row['jobs'] / row['peer_cpu_s']:>9,.0f}"
        f"{row['jct_s']:>11,.1f}{row['peer_jct_s']:>11,.1f}{row['peak_mb']:>6.0f}  {row['peer']}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
