"""Dependencies between jobs."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import Q, QuerySet

from scheduler.models import Job, JobDependency
from scheduler.states import TERMINAL, DependencyKind, JobState

K = DependencyKind
MET = Q(kind=K.SUCCEEDED, on__state=JobState.SUCCEEDED) | Q(kind=K.ENDED, on__state__in=TERMINAL)


def awaited(jobs: QuerySet[Job]) -> dict[str, tuple[str, ...]]:
    """The jobs that each of these still waits for."""
    rows = JobDependency.objects.filter(job__in=jobs.order_by().values("pk")).exclude(MET)
    found: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for job, on in rows.order_by("pk").values_list("job_id", "on_id"):
        found[job] += (on,)
    return found


def hopeless() -> QuerySet[JobDependency]:
    """Dependencies that can never be met, of jobs that wait or are paused."""
    gone = [state for state in TERMINAL if state != JobState.SUCCEEDED]
    return JobDependency.objects.filter(
        kind=K.SUCCEEDED, on__state__in=gone, job__state__in=[JobState.QUEUED, JobState.PAUSED]
    ).select_related("on")


def dependencies_of(job: Job) -> list[JobDependency]:
    """Return what the job comes after, with those jobs.

    A job of `get_job` knows already whether there are any.
    """
    if not getattr(job, "follows", True):
        return []
    return list(JobDependency.objects.filter(job=job).select_related("on"))
