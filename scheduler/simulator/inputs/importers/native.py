"""Our own trace schema, as exported by the portal and written by the importers."""

from __future__ import annotations

from scheduler.simulator.inputs.cells import flag, number, optional, whole
from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.trace import COLUMNS, TraceJob

_TEXTS = (
    "user", "group", "gpu_type", "work_unit", "profile", "method", "model", "recipe", "after", "after_ended",
    "array", "topology", "topology_level", "goal", "status", "pred_source",
)  # fmt: skip
_COUNTS = ("nodes", "min_gpus", "max_gpus", "batch_size", "priority", "array_limit")
_NUMBERS = (
    "duration_s", "work", "deadline_s", "slo", "max_run_s", "restart_s", "begin_s", "pred_duration_s"
)  # fmt: skip


def native(row: Row) -> TraceJob:
    """Read one row of the schema in docs/simulator.md.

    Columns that are empty or missing keep their default.
    """
    return TraceJob(
        job_id=row["job_id"],
        submit_s=number(row, "submit_s"),
        gpus=number(row, "gpus"),
        weight=number(row, "weight") if row.get("weight") else 1.0,
        preemptible=flag(row, "preemptible", default=True),
        **{COLUMNS[name]: row.get(name) or "" for name in _TEXTS},  # type: ignore[arg-type]
        **{name: whole(row, name) if row.get(name) else 0 for name in _COUNTS},  # type: ignore[arg-type]
        **{name: optional(row, name) for name in _NUMBERS},  # type: ignore[arg-type]
    )
