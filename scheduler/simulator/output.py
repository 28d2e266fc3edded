"""The output of a policy's simulation, as a line and as an object.

It holds the figures that the command writes and the portal stores.
"""

from __future__ import annotations

import resource
from typing import Any

from scheduler.simulator.engine import Engine
from scheduler.simulator.metrics import Metrics
from scheduler.simulator.scenario import Scenario
from scheduler.simulator.world.predictions import Fidelity

_MEASURES = (
    "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s", "wait_mean_s", "slowdown_mean", "makespan_s",
    "utilisation", "preemptions", "restarts",
)  # fmt: skip


def market_figures(engine: Engine) -> dict[str, Any]:
    """Money by kind of node, deadlines and interruptions; empty without a market."""
    rented = engine.rented
    if rented is None:
        return {}
    due = [run for run in engine.runs.values() if run.job.deadline_s is not None]
    met = sum(run.finished is not None and run.finished <= (run.job.deadline_s or 0.0) for run in due)
    return {
        "market": rented.market.trace.name,
        **{f"cost_{kind}": money for kind, money in rented.money.items()},
        "deadlines": len(due),
        "deadlines_met": met,
        "interruptions": rented.interruptions,
    }


def figures_of(
    scenario: Scenario, knowledge: Fidelity, policy: str, metrics: Metrics, cpu_s: float
) -> dict[str, Any]:
    """The object of a policy: exactly the keys of the contract (docs/simulator.md)."""
    measured = metrics.as_dict()
    return {
        "policy": policy,
        "knowledge": str(knowledge),
        "jobs": len(scenario.trace.jobs),
        "refused": len(scenario.refused),
        "load": scenario.load,
        **{name: measured[name] for name in _MEASURES},
        "cpu_s": cpu_s,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
