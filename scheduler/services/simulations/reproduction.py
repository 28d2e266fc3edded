"""How well a simulation reproduces the portal's own past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scheduler.services.simulations.own_past import OwnPast
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.world.predictions import Fidelity


def reproduction(past: OwnPast, progress: Callable[[int], None]) -> dict[str, Any]:
    """The jobs that succeeded, as they were and as they are simulated.

    Played are the nodes, policies and rules of that time, with what was promised to each job. A past that
    cannot be played so has a sentence as `trouble` instead.
    """
    policy, settings = past.as_it_was()
    figures: dict[str, Any] = {"policies": list(dict.fromkeys(one.name for _, one in past.policies))}
    try:
        engine, _ = past.scenario().simulate(policy, Fidelity.PERFORMANCE, settings, progress=progress)
    except SimulatorError as error:
        return figures | {"trouble": str(error)}
    pairs = [
        (past.took_s[name], run.finished - run.job.submit_s)
        for name, run in engine.runs.items()
        if name in past.took_s and run.finished is not None
    ]
    if not pairs:
        return figures | {"trouble": "No job of this range succeeded both really and in the simulation."}
    real, simulated = zip(*pairs, strict=True)
    return figures | {
        "jobs": len(pairs),
        "left_out": len(past.took_s) - len(pairs),
        "real": _jct(real),
        "simulated": _jct(simulated),
        "trouble": "",
    }


def _jct(took_s: Sequence[float]) -> dict[str, float]:
    return {"jct_mean_s": float(np.mean(took_s)), "jct_p95_s": float(np.percentile(took_s, 95))}
