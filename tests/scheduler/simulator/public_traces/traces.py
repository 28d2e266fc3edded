"""The places of traces.

Samples lie in the repository, whole traces beside it where somebody has them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.scenario import Scenario, open_scenario

SAMPLES = Path(__file__).parents[3] / "data" / "traces"  # NOTICE names their sources and licences
WHOLE = Path(__file__).parents[5] / "shared" / "data" / "traces"


def trace_file(name: str) -> Path:
    """A sample, else a whole trace; skips the test that asks where neither is here."""
    found = next((folder / name for folder in (SAMPLES, WHOLE) if (folder / name).exists()), None)
    if found is None:
        pytest.skip(f"../shared/data/traces/{name} is not here")
    return found


@cache
def scenario(trace: str, cluster: str, group: str | None = None) -> Scenario:
    """The trace, or a group of its jobs, on the cluster."""
    return open_scenario(trace_file(trace), parse_cluster(cluster), group)
