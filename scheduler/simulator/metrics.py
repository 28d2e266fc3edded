"""Measures of a simulation, as the field uses them. Times in s; shares are 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.fluid import FluidJob, fluid_ends
from scheduler.simulator.world.runs import Run

_ROUNDING = 1e-9
_TOTALS = ("attained_gpu_s", "lost_gpu_s", "preemptions", "restarts", "failures", "cost")
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Measures over all jobs that finished.

    `failed` ones, with those cancelled for them, and those that never ended are counted apart.
    slowdown: JCT over the run time alone, with the GPUs asked for.
    goodput: GPU time with lasting progress over GPU time offered.
    finish_time_fairness (Themis, NSDI 2020): JCT over the run time in an equal share of the
    cluster; above 1 is worse than that share.
    jain: Jain's index of the users' mean speeds (one over slowdown), 1 is equal.
    violation_ratio: share of the jobs with a deadline that end after it.
    fair_violation, fair_slack (UWFQ, 2025): by how much of their response time in the fluid,
    user-fair system jobs end after it, the mean over those that do; and before it, as a
    negative share, over the others.
    fair_violation_ratio: share of the jobs that end after it.
    """

    finished: int
    failed: int
    unfinished: int
    jct_mean_s: float
    jct_p50_s: float
    jct_p95_s: float
    jct_p99_s: float
    wait_mean_s: float
    wait_p50_s: float
    wait_p95_s: float
    wait_p99_s: float
    slowdown_mean: float
    slowdown_p50: float
    slowdown_p95: float
    slowdown_p99: float
    makespan_s: float
    utilisation: float
    goodput: float
    gpu_hours: float
    preemptions: int
    restarts: int
    failures: int  # options that turned out not to run
    tardiness_mean_s: float
    violation_ratio: float
    cost: float
    jain: float
    finish_time_fairness_mean: float
    finish_time_fairness_p95: float
    unfair_ratio: float  # share of jobs above 1
    fair_violation: float
    fair_slack: float
    fair_violation_ratio: float

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Lives:
    """The finished jobs' times as arrays of equal length, in the order of submission."""

    submitted: Array
    started: Array
    finished: Array
    alone_s: Array  # run time on a cluster of its own, with the GPUs asked for
    gpus: Array
    deadline: Array  # NaN where there is none

    @property
    def jct(self) -> Array:
        return self.finished - self.submitted


def lives(runs: Sequence[Run], alone_s: Sequence[float]) -> Lives:
    """The finished runs as arrays; `alone_s` belongs to `runs`."""
    jobs = [run.job for run in runs]
    finished = _array([run.finished for run in runs])
    done = ~np.isnan(finished)
    return Lives(
        submitted=_array([job.submit_s for job in jobs])[done],
        started=_array([run.first_start for run in runs])[done],
        finished=finished[done],
        alone_s=_array(alone_s)[done],
        gpus=np.ceil(_array([job.gpus for job in jobs])[done]),
        deadline=_array([job.deadline_s for job in jobs])[done],
    )


def _array(figures: Sequence[float | None]) -> Array:
    return np.array(figures, dtype=float)  # None becomes NaN


def measure(engine: Engine, runs: Sequence[Run], alone_s: Sequence[float]) -> Metrics:
    """Metrics of these runs of a simulation; `alone_s`: each run's time alone."""
    ended = [run.job for run in runs if run.finished is not None]
    done = lives(runs, alone_s)
    begin = min([run.job.submit_s for run in runs], default=0.0)
    end = float(done.finished.max()) if len(done.finished) else begin
    offered = _offered_gpu_s(engine.capacity_log, begin, end)
    totals = {name: sum(map(attrgetter(name), runs)) for name in _TOTALS}
    attained, lost = totals.pop("attained_gpu_s"), totals.pop("lost_gpu_s")
    failed = sum([not run.running and not run.options for run in runs if run.finished is None])
    return Metrics(
        finished=len(done.finished),
        failed=failed,
        unfinished=engine.open if len(runs) == len(engine.runs) else sum(map(_goes_on, runs)),
        **_percentiles("jct", done.jct, "_s"),
        **_percentiles("wait", done.started - done.submitted, "_s"),
        **_percentiles("slowdown", done.jct / done.alone_s, ""),
        makespan_s=end - begin,
        utilisation=attained / offered if offered else 0.0,
        goodput=(attained - lost) / offered if offered else 0.0,
        gpu_hours=attained / 3600,
        **totals,
        jain=_jain(ended, done),
        **_deadlines(done),
        **_fairness(done, engine.capacity_log[0][1]),
        **_against_fluid(ended, done, engine.capacity_log[0][1]),
    )


def _goes_on(run: Run) -> bool:
    return run.finished is None and bool(run.options)


def _percentiles(name: str, values: Array, unit: str) -> dict[str, Any]:
    if not len(values):
        return {f"{name}_{which}{unit}": 0.0 for which in ("mean", "p50", "p95", "p99")}
    p50, p95, p99 = np.percentile(values, [50, 95, 99])
    found = {"mean": values.mean(), "p50": p50, "p95": p95, "p99": p99}
    return {f"{name}_{which}{unit}": float(value) for which, value in found.items()}


def _offered_gpu_s(log: Sequence[tuple[float, int]], begin: float, end: float) -> float:
    """GPU-seconds of the ready nodes from the first arrival to the last finish."""
    ends = [at for at, _ in log[1:]] + [end]
    return sum(
        gpus * max(min(until, end) - max(at, begin), 0.0) for (at, gpus), until in zip(log, ends, strict=True)
    )


def _deadlines(done: Lives) -> dict[str, Any]:
    late = (done.finished - done.deadline)[~np.isnan(done.deadline)]
    if not len(late):
        return {"tardiness_mean_s": 0.0, "violation_ratio": 0.0}
    return {
        "tardiness_mean_s": float(np.maximum(late, 0.0).mean()),
        "violation_ratio": float((late > 0).mean()),
    }


def _fairness(done: Lives, cluster_gpus: int) -> dict[str, Any]:
    if not len(done.finished):
        return dict.fromkeys(("finish_time_fairness_mean", "finish_time_fairness_p95", "unfair_ratio"), 0.0)
    share = cluster_gpus / np.maximum(mean_active(done), 1.0)
    isolated_s = done.alone_s * np.maximum(done.gpus / share, 1.0)
    rho = done.jct / isolated_s
    return {
        "finish_time_fairness_mean": float(rho.mean()),
        "finish_time_fairness_p95": float(np.percentile(rho, 95)),
        "unfair_ratio": float((rho > 1.0 + _ROUNDING).mean()),
    }


def _against_fluid(ended: Sequence[TraceJob], done: Lives, gpus: int) -> dict[str, Any]:
    """Return the measures that compare jobs with the fluid, user-fair system.

    Users are those that the policies use; jobs that never finished are not served at all.
    """
    works = (done.gpus * done.alone_s).tolist()
    jobs = [
        FluidJob(job.submit_s, job.user or job.group, work, job.weight)
        for job, work in zip(ended, works, strict=True)
    ]
    ends = np.array(fluid_ends(jobs, float(gpus)))
    late = (done.finished - ends) / np.maximum(ends - done.submitted, 1e-9) if jobs else np.zeros(0)
    after, before = late[late > _ROUNDING], late[late < -_ROUNDING]
    return {
        "fair_violation": float(after.mean()) if len(after) else 0.0,
        "fair_slack": float(before.mean()) if len(before) else 0.0,
        "fair_violation_ratio": len(after) / len(late) if len(late) else 0.0,
    }


def mean_active(done: Lives) -> Array:
    """The mean number of jobs in the system during each job's life."""
    times = np.concatenate([done.submitted, done.finished])
    steps = np.concatenate([np.ones_like(done.submitted), -np.ones_like(done.finished)])
    order = np.argsort(times, kind="stable")
    times, active = times[order], np.cumsum(steps[order])
    area = np.concatenate([[0.0], np.cumsum(active[:-1] * np.diff(times))])
    lived = np.interp(done.finished, times, area) - np.interp(done.submitted, times, area)
    return np.asarray(lived / np.maximum(done.jct, 1e-9), dtype=float)


def _jain(ended: Sequence[TraceJob], done: Lives) -> float:
    """Over users; over jobs where the trace names no users."""
    users: dict[str, int] = {}
    of_job = [users.setdefault(job.user or job.job_id, len(users)) for job in ended]
    means = np.bincount(of_job, done.alone_s / done.jct) / np.bincount(of_job) if ended else np.zeros(0)
    return float(means.sum() ** 2 / (len(means) * (means**2).sum())) if len(means) else 1.0
