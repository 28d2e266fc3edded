"""The portal's own past as a trace that the simulator can play.

docs/simulator.md describes the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from knowledge.core.domain.types import Option
from scheduler.core.job_terms import JOB_TERMS, JobTerm, Kind
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Attempt, Job
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.states import DependencyKind


def past_jobs(
    since: datetime | None = None, until: datetime | None = None, *, ended_by: datetime | None = None
) -> QuerySet[Job]:
    """Return ended jobs submitted in [since, until), in the order of submission.

    They come with their attempts and what they came after; it takes four queries.
    ended_by: leaves out jobs that ended later, so that the same question has the same answer
    next time.
    """
    jobs = Job.objects.filter(ended_at__isnull=False, attempts__running_at__isnull=False).distinct()
    if since is not None:
        jobs = jobs.filter(submitted_at__gte=since)
    if until is not None:
        jobs = jobs.filter(submitted_at__lt=until)
    if ended_by is not None:
        jobs = jobs.filter(ended_at__lte=ended_by)
    return jobs.order_by("submitted_at", "id").prefetch_related(
        Prefetch("attempts", Attempt.objects.order_by("fence")), "dependencies", "array"
    )


def trace_jobs(jobs: Iterable[Job], origin: datetime | None = None) -> Iterator[TraceJob]:
    """Yield the jobs that ran, as the simulator reads them.

    Owners and teams are numbers, never names. A job's duration is the run time of its attempts,
    as if on the GPUs of the last one: an earlier attempt on twice as many counts twice.
    origin: from which times count; None: the first job's submission.
    """
    for job in jobs:
        ran = attempts_that_ran(job)
        gpu_s = sum(_ran_s(attempt) * _gpus(attempt) for attempt in ran)
        if gpu_s <= 0:
            continue
        origin = origin or job.submitted_at
        yield _trace_job(job, ran[-1].promised, gpu_s / _gpus(ran[-1]), origin)


def attempts_that_ran(job: Job) -> list[Attempt]:
    """The job's attempts that trained and have ended, the earliest first."""
    return [attempt for attempt in job.attempts.all() if attempt.running_at and attempt.ended_at]


def user_of(owner: int) -> str:
    """A person in a trace."""
    return f"user-{owner}"


def group_of(team: int) -> str:
    """A team in a trace."""
    return f"team-{team}"


def _trace_job(job: Job, option: Option, duration_s: float, origin: datetime) -> TraceJob:
    config, promise = option.config, job.promised
    return TraceJob(
        job_id=job.pk,
        submit_s=(job.submitted_at - origin).total_seconds(),
        user=user_of(job.owner_id),
        group=group_of(job.team_id) if job.team_id else "",
        gpus=option.gpus,
        nodes=option.nodes,
        gpu_type=option.gpu_model,
        duration_s=duration_s,
        batch_size=config.per_device_batch_size,
        tuning=config.tuning,
        after=_after(job, DependencyKind.SUCCEEDED),
        after_ended=_after(job, DependencyKind.ENDED),
        array=job.array_id or "",
        array_limit=(job.array.limit or 0) if job.array else 0,
        status=job.state,
        pred_duration_s=promise.duration_s.value if promise else None,
        pred_source=promise.source.value if promise else "",
        **_terms(job, origin),
    )


def _terms(job: Job, origin: datetime) -> dict[str, Any]:
    """What was asked of the job, by the columns of a trace."""
    asked = {term.trace: (term, term.of(job)) for term in JOB_TERMS.values() if term.trace}
    if job.topology_level is None:  # without a level, a trace has no word for closeness
        del asked["topology"]
    said = {column: one for column, one in asked.items() if one[1] is not None}
    return {column: _traced(term, value, origin) for column, (term, value) in said.items()}


def _traced(term: JobTerm, value: Any, origin: datetime) -> Any:
    """A value as a trace has it: seconds, and classes as numbers."""
    if term.kind is Kind.MOMENT:
        return max(0.0, (value - origin).total_seconds())
    return term.word(value) if term.scale is TopologyLevel else value


def _after(job: Job, kind: DependencyKind) -> str:
    return "|".join(one.on_id or one.on_array_id or "" for one in job.dependencies.all() if one.kind == kind)


def _ran_s(attempt: Attempt) -> float:
    if attempt.running_at is None or attempt.ended_at is None:
        return 0.0
    return max(0.0, (attempt.ended_at - attempt.running_at).total_seconds())


def _gpus(attempt: Attempt) -> int:
    return attempt.promised.gpus
