"""Traces whose jobs say what they train.

The run time follows from a table of measured rates.
"""

from __future__ import annotations

from scheduler.simulator.inputs.cells import number, optional, whole
from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.trace import TraceJob

_NO_SLO = -1.0
MAX_REPLICAS = 64  # what Sia's and Pollux' simulators allow a job


def sia(row: Row) -> TraceJob:
    """Read a job of Sia (SOSP'23) or Pollux (OSDI'21).

    It ends when it has made its application's progress.
    """
    return TraceJob(
        job_id=row["name"],
        submit_s=number(row, "time"),
        gpus=whole(row, "num_replicas"),
        min_gpus=1,
        max_gpus=MAX_REPLICAS,
        batch_size=whole(row, "batch_size"),
        profile=row["application"],
        model=row["application"],
        work=1.0,
        work_unit="training",
    )


def gavel_arrivals(row: Row) -> TraceJob:
    """Gavel (OSDI'20): Philly's arrivals with sampled job types."""
    return _gavel(row, f"{row['vc']}-{row['idx']}", row["vc"])


def gavel_physical(row: Row) -> TraceJob:
    """Read a job of Gavel's physical-cluster lists.

    `slo` is a factor on the ideal time; -1 means none.
    """
    slo = optional(row, "slo")
    return _gavel(
        row,
        f"{row['trace']}-{row['idx']}",
        row["trace"],
        weight=number(row, "priority_weight"),
        slo=None if slo == _NO_SLO else slo,
    )


def _gavel(row: Row, name: str, group: str, weight: float = 1.0, slo: float | None = None) -> TraceJob:
    return TraceJob(
        job_id=name,
        submit_s=max(number(row, "arrival_s"), 0.0),
        gpus=whole(row, "scale_factor"),
        work=number(row, "total_steps"),
        work_unit="steps",
        profile=row["job_type"],
        model=row["job_type"].split(" (")[0],
        group=group,
        weight=weight,
        slo=slo,
    )
