"""Policies on every trace of Sia, Pollux, Gavel and ElasticFlow, beside the order in their papers.

python benchmarks/scheduler/public_traces.py [SOURCE ...] [--traces FOLDER] [--results FILE]
    [--minutes 60] [--most-s 600] [--policies NAME[@LEVEL] ...] [--table]

Each simulation is a line of JSON in the results' file, written as it ends, and is not played again: after an
interruption, or when the minutes (CPU, of this run) are over, the same command goes on. First workloads of
all folders come first, and large traces last, by their size. One that takes more than --most-s (CPU s) is
given up, and says so. --table only prints: for each folder the mean of its workloads' mean completion times
in hours, over those that all policies have played, with the lowest and highest of these; deadlines met, and
makespans, where the papers compare these.
All of it takes some CPU hours.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.redirect_stdout import stdout_for_results
from scheduler.simulator.scenario import open_scenario, policy_named
from scheduler.simulator.world.predictions import Fidelity

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
# Policies that the sources' papers compare, as far as they are here. A level is a `Fidelity`: the
# papers' Tiresias leaves jobs as they were submitted.
POLICIES_OF = {
    "sia": ("fifo", "tiresias@default", "gavel", "pollux", "sia"),
    "pollux": ("tiresias-adaptdl@default", "pollux", "sia"),
    "gavel": ("fifo", "las", "gavel"),
    "elasticflow": ("fifo", "edd", "tiresias", "mdd"),
}
GAVEL_LISTS = (
    "max_min_fairness", "minimize_makespan", "artifact_evaluation", "debug", "debug_v2", "highmem_test",
    "medium_test", "small_test",
)  # fmt: skip
LARGE_BYTES = 30_000
SECONDS_AN_HOUR = 3600


class Played(NamedTuple):
    """A trace beside the cluster of its source; group: one of several traces in a file."""

    source: str
    file: str
    cluster: str
    group: str | None = None

    @property
    def name(self) -> str:
        return f"{self.file}{f' {self.group}' if self.group else ''}"

    @property
    def folder(self) -> str:
        """The workloads that are alike stand in one row."""
        return self.name if self.source in ("gavel", "elasticflow") else str(Path(self.file).parent)


class _GivenUpError(Exception):
    """A simulation takes too long."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=", ".join(POLICIES_OF))
    parser.add_argument("--traces", type=Path, default=TRACES)
    parser.add_argument("--results", type=Path, default=Path("public_traces.jsonl"))
    parser.add_argument("--policies", nargs="+", default=(), help=", ".join(SIMULATED))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--most-s", type=float, default=600.0)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.sources) - POLICIES_OF.keys():
        parser.error(f"no such source: {', '.join(sorted(unknown))}; there are {', '.join(POLICIES_OF)}")
    if not args.traces.exists():
        parser.error(f"{args.traces} is not here; name the traces' folder with --traces")
    chosen = [trace for source in args.sources or POLICIES_OF for trace in traces_of(source, args.traces)]
    traces = in_turns(chosen, args.traces)
    if not args.table:
        for trace in traces:
            for policy in args.policies or POLICIES_OF[trace.source]:
                if process_time() > args.minutes * 60:
                    break
                go_on(args.results, trace, policy, args.traces, args.most_s)
    print_table(traces, results_of(args.results))


def traces_of(source: str, folder: Path) -> Iterator[Played]:
    """The traces of a source, each with the cluster that its authors played it on."""
    if source == "gavel":
        for group in GAVEL_LISTS:
            yield Played(source, "gavel/physical_cluster_jobs.csv.gz", "v100:8x1,p100:16x1,k80:24x1", group)
        yield Played(source, "gavel/msr_seed0_jobs.csv.gz", "v100:36x4,p100:36x4,k80:36x4")
    elif source == "elasticflow":
        yield Played(source, "elasticflow/elasticVpollux_e.csv", "gpu:16x4")
        yield Played(source, "elasticflow/philly_103959.csv", "gpu:4x8")
    else:
        found = sorted((folder / {"sia": "sia", "pollux": "pollux_osdi21"}[source]).rglob("workload-*.csv"))
        for file in found:
            cluster = "default:16x4" if source == "pollux" else sia_cluster(file.parent.name)
            yield Played(source, str(file.relative_to(folder)), cluster)


def sia_cluster(folder: str) -> str:
    """64 GPUs of three models; as many times as many where every job comes so often."""
    times = int(folder.removeprefix("scale_").removesuffix("x")) if folder.startswith("scale_") else 1
    return f"aws:{6 * times}x4,rtx:{3 * times}x8,dgx-ext:{2 * times}x8"


def in_turns(traces: Iterable[Played], folder: Path) -> list[Played]:
    """The first trace of each folder, then the second of each, and so on; large ones last, by size."""
    turns: dict[str, int] = defaultdict(int)
    ordered: list[tuple[int, int, int, Played]] = []
    for trace in traces:
        turns[trace.folder] += 1
        size = (folder / trace.file).stat().st_size
        ordered.append((size if size > LARGE_BYTES else 0, turns[trace.folder], len(ordered), trace))
    return [trace for *_, trace in sorted(ordered)]


def go_on(results: Path, trace: Played, policy: str, folder: Path, most_s: float) -> None:
    """Play a trace under a policy, unless that was done before."""
    if (trace.name, policy) in results_of(results):
        return
    played = {"trace": trace.name, "policy": policy, **play(trace, policy, folder, most_s)}
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(played) + "\n")
    print(json.dumps(played), flush=True)


def play(trace: Played, policy: str, folder: Path, most_s: float) -> dict[str, Any]:
    """The figures of a simulation, or why there are none."""
    scenario = open_scenario(folder / trace.file, parse_cluster(trace.cluster), trace.group)
    name, _, level = policy.partition("@")
    found: dict[str, Any] = {"jobs": len(scenario.trace.jobs), "load": round(scenario.load, 2)}
    began = process_time()
    try:
        with stdout_for_results():
            _, metrics = scenario.simulate(
                policy_named(name), Fidelity(level or "oracle"), progress=_within(began + most_s)
            )
    except _GivenUpError:
        return {**found, "problem": f"over {most_s:.0f} CPU s"}
    except SimulatorError as error:
        return {**found, "problem": str(error)}
    return {
        **found,
        "jct_h": metrics.jct_mean_s / SECONDS_AN_HOUR,
        "jct_p99_h": metrics.jct_p99_s / SECONDS_AN_HOUR,
        "makespan_h": metrics.makespan_s / SECONDS_AN_HOUR,
        "deadlines_met": 1.0 - metrics.violation_ratio if trace.source == "elasticflow" else None,
        "unfinished": metrics.unfinished,
        "cpu_s": round(process_time() - began, 1),
    }


def _within(end: float) -> Callable[[int], None]:
    def check(_open: int) -> None:
        if process_time() > end:
            raise _GivenUpError

    return check


def results_of(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The simulations played so far, by trace and policy."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {(row["trace"], row["policy"]): row for row in map(json.loads, lines)}


def print_table(traces: Iterable[Played], results: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """One row a folder: how many traces of it all policies have played, and the means over these."""
    folders: dict[str, list[Played]] = defaultdict(list)
    for trace in traces:
        folders[trace.folder].append(trace)
    print("| traces | played | jobs | load | mean completion, h; others | CPU s |")
    print("| --- | --- | ---: | ---: | --- | ---: |")
    for folder, alike in folders.items():
        found = {p: results[alike[0].name, p] for name, p in results if name == alike[0].name}
        problems = [f"{policy} {row['problem']}" for policy, row in found.items() if "problem" in row]
        policies = [policy for policy, row in found.items() if "problem" not in row]
        rows = [[results.get((trace.name, policy), {}) for policy in policies] for trace in alike]
        whole = [row for row in rows if row and all("jct_h" in one for one in row)]
        if found:
            print(f"| {folder} | {len(whole)} of {len(alike)} | {_figures(whole, policies, problems)} |")


def _figures(rows: list[list[Mapping[str, Any]]], policies: list[str], problems: list[str]) -> str:
    """Jobs, offered load, each policy's figures and what they cost, over traces that all have played."""
    if not rows:
        return f"| | {'; '.join(problems)} |"
    by_policy = zip(policies, zip(*rows, strict=True), strict=True)
    cells = [_cell(policy, played) for policy, played in by_policy]
    jobs, load = mean(row[0]["jobs"] for row in rows), mean(row[0]["load"] for row in rows)
    cpu_s = sum(one["cpu_s"] for row in rows for one in row)
    return f"{jobs:.0f} | {load:.2f} | {'; '.join(cells + problems)} | {cpu_s:.0f}"


def _cell(policy: str, rows: Sequence[Mapping[str, Any]]) -> str:
    hours = [row["jct_h"] for row in rows]
    text = f"{policy} {mean(hours):.2f}"
    if len(hours) > 1:
        text += f" ({min(hours):.2f} to {max(hours):.2f})"
    if rows[0]["deadlines_met"] is not None:
        return f"{text} ({mean(row['deadlines_met'] for row in rows):.0%} in time)"
    if rows[0]["trace"].startswith("gavel"):
        return f"{text} (makespan {mean(row['makespan_h'] for row in rows):.1f})"
    return text


if __name__ == "__main__":
    main()
