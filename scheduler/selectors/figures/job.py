"""All figures of a job but its cost, which takes queries of its own (`cost.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduler.models import Job, Metric
from scheduler.selectors.figures import times, training
from scheduler.selectors.figures.times import Ending
from scheduler.selectors.figures.warnings import JobWarning, data_notes, job_warnings, output_warnings
from scheduler.selectors.public_states import shown_state
from scheduler.selectors.silence import silent_since


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    """Figures as docs/figures.md defines them; None is unknown, or not shown now.

    stage: what a running job does before it trains. silent_since: since when nothing is heard of it.
    data_notes: how its data were read, such as rows that were cut.
    output_warnings: of a job that succeeded, what is wrong with its output.
    """

    state: str
    since: datetime
    silent_since: datetime | None
    stage: str
    ending: Ending | None
    warnings: tuple[JobWarning, ...]
    data_notes: tuple[str, ...]
    output_warnings: tuple[str, ...]
    ended_at: datetime | None
    step: int
    total_steps: int | None
    percent: int | None
    tokens_per_second: float | None
    loss: float | None
    peak_memory_bytes: int | None

    @property
    def time_left_s(self) -> float | None:
        return self.ending.left.value if self.ending else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elapsed:
    """How long a job took by a moment, all its attempts together."""

    waiting_s: float
    startup_s: float
    duration_s: float


def job_figures(job: Job, now: datetime) -> JobFigures:
    """Return the job's figures by `now`.

    It takes a query only where its attempts were not read with it. The job was read by `with_nodes_heard`.
    """
    attempts = list(job.attempts.all())
    silent = silent_since(job, now)
    return JobFigures(
        state=shown_state(job),
        since=times.since(job),
        silent_since=silent,
        stage=times.stage(job),
        ending=times.ending(job, attempts, now, silent=silent is not None),
        warnings=job_warnings(job, attempts),
        data_notes=data_notes(attempts),
        output_warnings=output_warnings(job, attempts),
        ended_at=job.ended_at,
        step=job.step,
        total_steps=job.total_steps,
        percent=training.percent(job),
        tokens_per_second=training.speed(job, attempts, silent=silent is not None),
        loss=job.loss,
        peak_memory_bytes=training.peak_memory_bytes(attempts),
    )


def elapsed(job: Job, now: datetime) -> Elapsed:
    """How long the job waited, started up and ran by `now`."""
    attempts = list(job.attempts.all())
    return Elapsed(
        waiting_s=times.waiting_s(job, now),
        startup_s=times.startup_s(attempts, now),
        duration_s=times.duration_s(attempts, now),
    )


def first_loss(job: Job) -> float | None:
    """The training loss of the job's first report that has one; one query."""
    losses = Metric.objects.filter(attempt__job=job, loss__isnull=False).order_by("attempt__fence", "step")
    return losses.values_list("loss", flat=True).first()
