"""Traces whose jobs keep the GPUs they asked for and run for a recorded time."""

from __future__ import annotations

from scheduler.record_builders import builder
from scheduler.simulator.inputs.cells import number, optional, wall_clock, whole
from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.trace import TraceJob

trace_job = builder(TraceJob)


def philly(row: Row) -> TraceJob:
    """Microsoft Philly (Jeon et al., ATC'19)."""
    return trace_job(
        job_id=row["job_id"],
        submit_s=wall_clock(row, "submit_time"),
        gpus=whole(row, "gpus"),
        duration_s=number(row, "duration_s"),
        group=row["vc"],
    )


def venus(row: Row) -> TraceJob:
    """Read a job of SenseTime Helios, cluster Venus (Hu et al., SC'21).

    EBM's prediction is used where there is one.
    """
    return trace_job(
        job_id=row["job_id"],
        submit_s=wall_clock(row, "submit_time"),
        gpus=whole(row, "gpus"),
        duration_s=number(row, "duration_s"),
        status="CAPPED" if row["duration_capped"] == "1" else "",
        pred_duration_s=_meant(optional(row, "pred_ebm_s")),
        pred_source="ebm",
    )


def venus_bench(row: Row) -> TraceJob:
    """The 5,000 jobs of September 2020 that public simulators were measured on."""
    return trace_job(
        job_id=row["job_id"],
        submit_s=number(row, "submit_s"),
        gpus=whole(row, "gpus"),
        duration_s=number(row, "duration_s"),
        pred_duration_s=_meant(optional(row, "pred_ebm")),
        pred_source="ebm",
    )


def helios(row: Row) -> TraceJob:
    """Read a job of Helios' or Acme's own logs.

    Their times are zone-aware; jobs without GPUs are not GPU jobs.
    """
    return trace_job(
        job_id=row["job_id"],
        submit_s=wall_clock(row, "submit_time"),
        gpus=whole(row, "gpu_num"),
        nodes=whole(row, "node_num"),
        duration_s=number(row, "duration"),
        user=row["user"],
        group=row.get("vc") or row.get("queue") or "",
        status=row["state"],
    )


def pai(row: Row) -> TraceJob:
    """Alibaba PAI 2020 (Weng et al., NSDI'22)."""
    return trace_job(
        job_id=row["job_id"],
        submit_s=number(row, "submit_s"),
        gpus=whole(row, "gpus"),
        duration_s=number(row, "duration_s"),
    )


def openb(row: Row) -> TraceJob:
    """Alibaba GPU-2023 pods: shares of a GPU, and the models that a pod accepts."""
    started = "scheduled_time" if row["scheduled_time"] else "creation_time"
    return trace_job(
        job_id=row["name"],
        submit_s=number(row, "creation_time"),
        gpus=number(row, "gpu_milli") / 1000 * number(row, "num_gpu"),
        duration_s=number(row, "deletion_time") - number(row, started),
        gpu_type=row["gpu_spec"],
        priority=1 if row["qos"] == "LS" else 0,
        preemptible=row["qos"] == "BE",
        status=row["pod_phase"],
    )


def tiresias(row: Row) -> TraceJob:
    """Tiresias' sample (Gu et al., NSDI'19)."""
    return trace_job(
        job_id=row["job_id"],
        submit_s=number(row, "submit_time"),
        gpus=whole(row, "num_gpu"),
        duration_s=number(row, "duration"),
        model=row["model_name"],
    )


def elasticflow(row: Row) -> TraceJob:
    """ElasticFlow's jobs with a deadline each (Gu et al., ASPLOS'23)."""
    return trace_job(
        job_id=row["job_id"],
        submit_s=number(row, "submit_time"),
        gpus=whole(row, "num_gpu"),
        duration_s=number(row, "duration"),
        deadline_s=number(row, "ddl"),
        model=row["model_name"],
        batch_size=whole(row, "batch_size"),
        preemptible=True,
    )


def _meant(predicted_s: float | None) -> float | None:
    """A published prediction; the estimators' values below 1 s cannot be meant."""
    return None if predicted_s is None else max(predicted_s, 1.0)
