"""Mean completion times of policies on every trace of Sia, Pollux, Gavel and ElasticFlow.

python benchmarks/scheduler/public_traces.py [SOURCE ...] [--traces FOLDER] [--first] [--policies ...]

One line a trace, as it comes: jobs, offered load, each policy's mean completion time in hours, with true
durations and the rounds of the policies, and where jobs have deadlines the share missed; and CPU seconds.
--first: the first workload of each folder. All of it takes some CPU hours.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scheduler.core.policies import POLICIES
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.quiet import stdout_for_results
from scheduler.simulator.scenario import open_scenario, policy_named
from scheduler.simulator.world.predictions import Fidelity

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
SOURCES = ("sia", "pollux", "gavel", "elasticflow")
GAVEL_LISTS = (
    "artifact_evaluation", "debug", "debug_v2", "highmem_test", "max_min_fairness", "medium_test",
    "minimize_makespan", "small_test",
)  # fmt: skip
ORDERED = ("fifo", "tiresias", "gavel", "pollux", "sia")
SECONDS_AN_HOUR = 3600


class Played(NamedTuple):
    """A trace beside the cluster of its source; group: one of several traces in a file."""

    file: str
    cluster: str
    group: str | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=", ".join(SOURCES))
    parser.add_argument("--traces", type=Path, default=TRACES)
    parser.add_argument("--policies", nargs="+", default=ORDERED, help=", ".join(POLICIES))
    parser.add_argument("--first", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.sources) - set(SOURCES):
        parser.error(f"no such source: {', '.join(sorted(unknown))}; there are {', '.join(SOURCES)}")
    if not args.traces.exists():
        parser.error(f"{args.traces} is not here; name the traces' folder with --traces")
    print(f"| trace | jobs | load | {' | '.join(args.policies)} |")
    print(f"| --- | ---: | ---: |{' ---: |' * len(args.policies)}")
    for source in args.sources or SOURCES:
        for played in traces_of(source, args.traces, first=args.first):
            print(row(played, args.traces, args.policies), flush=True)


def traces_of(source: str, folder: Path, *, first: bool) -> Iterator[Played]:
    """The traces of a source, each with the cluster that its authors played it on."""
    if source == "gavel":
        for group in GAVEL_LISTS[:1] if first else GAVEL_LISTS:
            yield Played("gavel/physical_cluster_jobs.csv.gz", "v100:8x1,p100:16x1,k80:24x1", group)
        yield Played("gavel/msr_seed0_jobs.csv.gz", "v100:36x4,p100:36x4,k80:36x4")
        return
    if source == "elasticflow":
        yield Played("elasticflow/elasticVpollux_e.csv", "gpu:16x8")
        yield Played("elasticflow/philly_103959.csv", "gpu:16x8")
        return
    found = sorted((folder / {"sia": "sia", "pollux": "pollux_osdi21"}[source]).rglob("workload-*.csv"))
    seen: set[Path] = set()
    for file in found:
        if first and file.parent in seen:
            continue
        seen.add(file.parent)
        cluster = "default:16x4" if source == "pollux" else sia_cluster(file.parent.name)
        yield Played(str(file.relative_to(folder)), cluster)


def sia_cluster(folder: str) -> str:
    """64 GPUs of three models; as many times as many where every job comes so often."""
    times = int(folder.removeprefix("scale_").removesuffix("x")) if folder.startswith("scale_") else 1
    return f"aws:{6 * times}x4,rtx:{3 * times}x8,dgx-ext:{2 * times}x8"


def row(played: Played, folder: Path, policies: list[str]) -> str:
    """One line of the table; a policy that cannot play the trace says why."""
    scenario = open_scenario(folder / played.file, parse_cluster(played.cluster), played.group)
    cells = []
    for name in policies:
        began = process_time()
        try:
            with stdout_for_results():
                _, metrics = scenario.simulate(policy_named(name), Fidelity.ORACLE)
        except SimulatorError as error:
            cells.append(str(error))
            continue
        late = f", {metrics.violation_ratio:.0%} late" if metrics.tardiness_mean_s else ""
        cpu = f", {process_time() - began:.0f} s"
        cells.append(f"{metrics.jct_mean_s / SECONDS_AN_HOUR:.2f}{late}{cpu}")
    name = f"{played.file}{f' {played.group}' if played.group else ''}"
    return f"| {name} | {len(scenario.trace.jobs)} | {scenario.load:.2f} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
