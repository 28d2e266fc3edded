"""Traces whose jobs say what they train, so that the run time follows from a table of measured rates."""

from __future__ import annotations

from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.importers.convert import number, whole
from scheduler.simulator.inputs.trace import TraceJob

MAX_REPLICAS = 64  # what Sia's and Pollux' simulators allow a job


def sia(row: Row) -> TraceJob:
    """Sia (SOSP'23) and Pollux (OSDI'21): a job ends when it has made its application's progress."""
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
    """Gavel's physical-cluster lists; `slo` is a factor on the ideal time and -1 means none."""
    return _gavel(row, f"{row['trace']}-{row['idx']}", row["trace"], weight=number(row, "priority_weight"))


def _gavel(row: Row, name: str, group: str, weight: float = 1.0) -> TraceJob:
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
    )
