"""The command line of the simulator.

It takes a trace, a cluster and policies, and writes figures as JSON and a report as HTML.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from scheduler.core.limits import Limits
from scheduler.core.types import Policy
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs import files
from scheduler.simulator.inputs.cluster import Cluster, parse_cluster
from scheduler.simulator.inputs.market import SimulatedMarket, read_market
from scheduler.simulator.inputs.quotas import read_quotas
from scheduler.simulator.output import figures_of, market_figures
from scheduler.simulator.redirect_stdout import stdout_for_results
from scheduler.simulator.report import Result, html
from scheduler.simulator.scenario import Scenario, open_scenario, policy_named
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.interference import Colocation, across_nodes
from scheduler.simulator.world.predictions import Fidelity
from trainer.written import decimal, whole

SHOWN_REFUSALS = 10
_REDRAW_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `simulate`, for both interfaces."""
    add = parser.add_argument
    add("--trace", required=True, type=Path, help="a public trace, our own schema, or a folder of it")
    add("--group", help="only the jobs of this virtual cluster, queue or named trace (all)")
    add(
        "--cluster",
        help="type:nodes x GPUs each /GPUs that share what @price per GPU-hour: a100:8x8/numa=4,l40s:4x4@1.1"
        " (the folder's cluster.csv)",
    )
    add("--policy", required=True, action="append", help="a policy's name; repeat it to compare")
    add(
        "--knowledge",
        default=Fidelity.ORACLE,
        type=Fidelity,
        choices=list(Fidelity),
        help="what is known (oracle)",
    )
    add("--error", default=0.0, type=decimal, help="median error of `performance`, e.g. 0.2 for 20 %% (0)")
    add("--seed", default=0, type=whole, help="of the prediction errors (0)")
    add("--round-s", type=decimal, help="length of a round; 0: decide at every event (the policy's own)")
    add("--restart-s", default=0.0, type=decimal, help="what a start costs a job that ran before (0)")
    add("--checkpoint-s", default=0.0, type=decimal, help="between checkpoints, if nodes fail (0: each step)")
    add(
        "--profile-s",
        default=0.0,
        type=decimal,
        help="of a run that measures a job of which nothing is known (0)",
    )
    add("--interference", default=0.0, type=decimal, help="share of pace lost where multi-node jobs meet (0)")
    add("--packing", action="store_true", help="let two jobs share GPUs, as Lucid does (simulator only)")
    add("--quotas", type=Path, help="JSON: [{team: a group of the trace, gpu_model, guaranteed, ...}]")
    add("--market", type=Path, help="a recorded market, whose nodes `spot` rents (docs/markets/spot.md)")
    add("--market-part", help="the one of several markets in that file")
    add("--on-demand", help="nodes of the market that there always are: v100:16x1@3.06")
    add("--spot-price", type=decimal, help="of a GPU for an hour, for a market of which only nodes are known")
    add("--decider", default="", help="for all jobs with a deadline (each draws one of the pool)")
    add("--json", required=True, type=Path, help="where the figures go")
    add("--html", type=Path, help="where a report with charts goes")


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m scheduler.simulator`. 2 if it cannot be done as asked."""
    parser = argparse.ArgumentParser(prog="simulate", description="Play a trace of jobs on a cluster.")
    add_arguments(parser)
    try:
        run(vars(parser.parse_args(arguments)))
    except SimulatorError as error:
        print(f"simulate: {error}", file=sys.stderr)
        return 2
    return 0


def run(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Simulate each policy, write the files and return the figures.

    Raises SimulatorError.
    """
    console = Console(stderr=True)
    policies = [policy_named(name) for name in options["policy"]]
    market = read_market(options)
    scenario = open_scenario(options["trace"], _cluster(options["cluster"]), options["group"], market)
    _announce(console, scenario)
    with stdout_for_results():  # --json may name /dev/stdout
        results = [_play(console, scenario, policy, options, market) for policy in policies]
    figures = [result.figures for result in results]
    files.write_text(options["json"], json.dumps(figures, indent=2) + "\n")
    if options["html"]:
        files.write_text(options["html"], html(results, scenario))
    return figures


def _play(
    console: Console,
    scenario: Scenario,
    policy: Policy,
    options: dict[str, Any],
    market: SimulatedMarket | None,
) -> Result:
    began = time.process_time()
    with _bar(console, policy.name, len(scenario.trace.jobs)) as progress:
        engine, metrics = scenario.simulate(
            policy,
            options["knowledge"],
            _settings(options),
            error=options["error"],
            seed=options["seed"],
            colocation=_colocation(options["interference"]),
            packing=options["packing"],
            market=market,
            profile_s=options["profile_s"],
            progress=progress,
        )
    cpu_s = time.process_time() - began
    figures = figures_of(scenario, options["knowledge"], policy.name, metrics, cpu_s)
    figures |= market_figures(engine)
    return Result(policy.name, list(engine.runs.values()), metrics, figures)


def _cluster(text: str | None) -> Cluster | None:
    return None if text is None else parse_cluster(text)


def _settings(options: dict[str, Any]) -> SimulationSettings:
    for name in ("error", "round_s", "restart_s", "checkpoint_s", "profile_s"):
        value = options[name]
        if value is not None and not 0.0 <= value < math.inf:
            raise SimulatorError(f"--{name.replace('_', '-')} is {value:g}; give 0 or more")
    return SimulationSettings(
        round_s=options["round_s"],
        restart_s=options["restart_s"],
        checkpoint_s=options["checkpoint_s"],
        limits=read_quotas(options["quotas"]) if options["quotas"] else Limits(),
    )


def _colocation(share: float) -> Colocation | None:
    if not 0.0 <= share < 1.0:
        raise SimulatorError(
            f"--interference: {share:g} is no share of the pace; give 0 or more and less than 1"
        )
    return Colocation(across_nodes(share)) if share else None


def _announce(console: Console, scenario: Scenario) -> None:
    trace, refused, gpus = scenario.trace, scenario.refused, scenario.cluster.total_gpus
    console.print(
        f"{len(trace.jobs)} jobs of {trace.meta['source']} on {gpus} GPUs: "
        f"offered load {scenario.load:.2f} ({scenario.load * gpus:.0f} GPUs busy on average)"
    )
    for refusal in refused[:SHOWN_REFUSALS]:
        console.print(f"  refused: row {refusal.row} {refusal.job_id}: {refusal.reason}", markup=False)
    if len(refused) > SHOWN_REFUSALS:
        console.print(f"  and {len(refused) - SHOWN_REFUSALS} more refused")


@contextmanager
def _bar(console: Console, name: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """A progress bar in jobs ended; drawn a few times a second, whatever the speed."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, auto_refresh=False) as bar:
        task = bar.add_task(name, total=jobs)
        shown = time.monotonic()

        def progress(still_open: int) -> None:
            nonlocal shown
            if time.monotonic() - shown > _REDRAW_S or not still_open:
                shown = time.monotonic()
                bar.update(task, completed=jobs - still_open)
                bar.refresh()

        yield progress
