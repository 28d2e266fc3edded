"""Dependencies of jobs on other jobs and on whole arrays."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduler.models import Job, JobArray, JobDependency
from scheduler.states import LIVE, TERMINAL, DependencyKind, JobState

K = DependencyKind
HOPELESS = frozenset(TERMINAL - {JobState.SUCCEEDED})
PRESENT = frozenset({JobState.QUEUED, *LIVE})  # the states of jobs that policies see
MET = Q(kind=K.SUCCEEDED, on__state=JobState.SUCCEEDED) | Q(kind=K.ENDED, on__state__in=TERMINAL)


def awaited(jobs: QuerySet[Job]) -> dict[str, tuple[str, ...]]:
    """The jobs and arrays that each of these still waits for.

    Of an array that will not end by itself, a job that no policy sees, for it is paused, is named as well.
    """
    rows = JobDependency.objects.filter(job__in=jobs.order_by().values("pk")).exclude(MET).order_by("pk")
    listed = list(rows.values_list("job_id", "on_id", "on_array_id", "kind"))
    left = _left_of({array for _, _, array, _ in listed if array})
    found: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for job, on, array, kind in listed:
        if names := left.get((array, kind), ()) if array else (on,):
            found[job] += names
    return found


def _left_of(arrays: set[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The names to wait for, of arrays with jobs that have not succeeded, or ended."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    if not arrays:
        return found
    rows = Job.objects.filter(array__in=arrays).exclude(state=JobState.SUCCEEDED).order_by("pk")
    for job, array, state in rows.values_list("pk", "array_id", "state"):
        for kind in (K.SUCCEEDED,) if state in TERMINAL else (K.SUCCEEDED, K.ENDED):
            known = found.get((array, kind), (array,))
            found[array, kind] = known if state in PRESENT or len(known) > 1 else (*known, job)
    return found


def hopeless() -> QuerySet[JobDependency]:
    """Dependencies that can never be met, of jobs that wait or are paused."""
    gone = Job.objects.filter(array=OuterRef("on_array"), state__in=HOPELESS)
    return JobDependency.objects.filter(
        Q(on__state__in=HOPELESS) | Exists(gone),
        kind=K.SUCCEEDED,
        job__state__in=[JobState.QUEUED, JobState.PAUSED],
    ).select_related("on", "on_array")


def never_to_succeed(on: Job | JobArray) -> Job | None:
    """The job, or the first one of the array, that has ended without success."""
    if isinstance(on, Job):
        return on if on.state in HOPELESS else None
    return Job.objects.filter(array=on, state__in=HOPELESS).order_by("submitted_at").first()


def to_come_after(job: Job) -> list[JobDependency]:
    """The jobs and arrays that a job comes after and that have not ended."""
    found = dependencies_of(job)
    arrays = {one.on_array_id for one in found if one.on_array_id}
    unfinished = (
        Job.objects.filter(array__in=arrays).exclude(state__in=TERMINAL) if arrays else Job.objects.none()
    )
    going_on = set(unfinished.order_by().values_list("array_id", flat=True).distinct())
    return [one for one in found if one.on_array_id in going_on or (one.on and one.on.state not in TERMINAL)]


def dependencies_of(job: Job) -> list[JobDependency]:
    """Return what the job comes after, with those jobs and arrays.

    A job of `get_job` knows already whether there is anything.
    """
    if not getattr(job, "follows", True):
        return []
    return list(JobDependency.objects.filter(job=job).select_related("on", "on_array"))
