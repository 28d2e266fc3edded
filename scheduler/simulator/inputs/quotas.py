"""Quotas for a simulation, from a file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from scheduler.core.limits import Limits, Quota
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs import files
from trainer.strict_json import is_whole

EXAMPLE = '[{"team": "vc1", "gpu_model": "", "guaranteed": 8, "borrow_limit": null, "lending_limit": null}]'
NUMBERS = ("guaranteed", "borrow_limit", "lending_limit")


def read_quotas(path: Path) -> Limits:
    """The quotas of the groups of a trace; teams are its groups.

    Raises SimulatorError.
    """
    rows = files.read_json(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SimulatorError(f"{path.name} must be a list of quotas, such as {EXAMPLE}")
    quotas = tuple(_quota(path, number, row) for number, row in enumerate(rows))
    if len({(quota.team, quota.gpu_model) for quota in quotas}) < len(quotas):
        raise SimulatorError(f"{path.name} names a team and model twice; give each once")
    return Limits(quotas)


def _quota(path: Path, number: int, row: dict[str, Any]) -> Quota:
    known = [field.name for field in fields(Quota)]
    if unknown := sorted(set(row) - set(known)):
        raise SimulatorError(
            f"{path.name}, quota {number}: no field {unknown[0]}; known are {', '.join(known)}"
        )
    if not isinstance(row.get("team"), str) or not isinstance(row.get("gpu_model", ""), str):
        raise SimulatorError(f"{path.name}, quota {number}: team and gpu_model must be texts")
    for name in NUMBERS:
        value = row.get(name)
        missing = value is None and name != "guaranteed"
        if not missing and not (is_whole(value) and value >= 0):
            raise SimulatorError(f"{path.name}, quota {number}: {name} must be a whole number of 0 or more")
    return Quota(**row)
