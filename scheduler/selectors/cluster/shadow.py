"""A policy on probation, and the times before and after a switch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean

from django.db.models import F, Min, Q, QuerySet

from scheduler.models import Attempt, Job, PolicyChoice, ShadowJob, ShadowPolicy
from scheduler.states import JobState

MOST_JOBS = 5000  # the newest ones are compared
SHOWN = 5  # jobs that would have started earliest, or latest, beside what they did
NOTICED_S = 60.0  # less apart is the same start: the shadow looks every half minute
LONGEST = timedelta(days=28)  # of the times before and after a switch


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """The figures of one policy for the same jobs.

    waited_s: mean time to the first start, up to now where there is none yet. jct_s: mean time from
    submission to the end, of the jobs that have ended under both. stops: of running jobs, moves included.
    """

    started: int
    waited_s: float | None
    jct_s: float | None
    stops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedStart:
    """A job whose start the policy on probation would have moved.

    by_s: below 0 it would start earlier.
    """

    job: Job
    started_at: datetime | None
    shadow_started_at: datetime | None
    by_s: float

    @property
    def apart_s(self) -> float:
        return abs(self.by_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both policies compared, on the jobs that had not started when probation began.

    ended: how many have ended under both. moved: those whose starts lie farthest apart, `SHOWN` either way.
    """

    shadow: ShadowPolicy
    jobs: int
    ended: int
    real: PolicyOutcome
    shadowed: PolicyOutcome
    earlier: int
    later: int
    moved: list[MovedStart]


def shadows() -> tuple[ShadowPolicy | None, list[ShadowPolicy]]:
    """The policy on probation, and the last ones that were, newest first."""
    newest = list(ShadowPolicy.objects.select_related("started_by").order_by("-open", "-id")[: SHOWN + 1])
    now = next((shadow for shadow in newest if shadow.open), None)
    return now, [shadow for shadow in newest if not shadow.open][:SHOWN]


def compared(shadow: ShadowPolicy) -> Comparison:
    """Five queries."""
    since, until = shadow.started_at, shadow.ended_at or shadow.at
    really = _really_started(shadow)
    rows = list(_rows(shadow)[:MOST_JOBS])
    both = [row for row in rows if row.ended_at and row.job.ended_at and row.job.state == JobState.SUCCEEDED]
    moves = [_moved(row, really.get(row.job_id), until) for row in rows]
    earlier = [move for move in moves if move.by_s < -NOTICED_S]
    later = [move for move in moves if move.by_s > NOTICED_S]
    stops = Attempt.objects.filter(stopped_for__isnull=False, ended_at__gte=since, ended_at__lt=until)
    return Comparison(
        shadow=shadow,
        jobs=len(rows),
        ended=len(both),
        real=PolicyOutcome(
            started=sum(really.get(row.job_id) is not None for row in rows),
            waited_s=_mean(_waited(row.job, really.get(row.job_id), until) for row in rows),
            jct_s=_mean(_seconds(row.job.submitted_at, row.job.ended_at) for row in both),
            stops=stops.count(),
        ),
        shadowed=PolicyOutcome(
            started=sum(row.started_at is not None for row in rows),
            waited_s=_mean(_waited(row.job, row.started_at, until) for row in rows),
            jct_s=_mean(_seconds(row.job.submitted_at, row.ended_at) for row in both),
            stops=sum(ShadowJob.objects.filter(shadow=shadow).values_list("stops", flat=True)),
        ),
        earlier=len(earlier),
        later=len(later),
        moved=[
            *sorted(earlier, key=lambda move: move.by_s)[:SHOWN],
            *sorted(later, key=lambda move: -move.by_s)[:SHOWN],
        ],
    )


def _rows(shadow: ShadowPolicy) -> QuerySet[ShadowJob]:
    began = shadow.started_at
    rows = ShadowJob.objects.annotate(first=Min("job__attempts__created_at"))
    not_started = Q(first__isnull=True) | Q(first__gte=began)
    found = rows.filter(not_started, shadow=shadow).exclude(job__state=JobState.CANCELLED)
    return found.select_related("job").order_by("-id")


def _really_started(shadow: ShadowPolicy) -> dict[str, datetime]:
    """When each job was first given GPUs."""
    attempts = Attempt.objects.filter(job__in=ShadowJob.objects.filter(shadow=shadow).values("job"))
    return dict(attempts.order_by().values_list("job").annotate(first=Min("created_at")))


def _moved(row: ShadowJob, real: datetime | None, until: datetime) -> MovedStart:
    shadow = row.started_at
    return MovedStart(
        job=row.job,
        started_at=real,
        shadow_started_at=shadow,
        by_s=((shadow or until) - (real or until)).total_seconds(),
    )


def _waited(job: Job, started: datetime | None, until: datetime) -> float:
    return max(0.0, ((started or until) - job.submitted_at).total_seconds())


def _seconds(start: datetime, end: datetime | None) -> float:
    return (end - start).total_seconds() if end else 0.0


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The ends and figures of the jobs in a time.

    waited_s: mean, of those that first started in it.

    jct_s: mean, of those that succeeded in it. stops: of running jobs for others, moves included.
    """

    policy: str
    began_at: datetime
    ended_at: datetime
    started: int
    waited_s: float | None
    succeeded: int
    jct_s: float | None
    stops: int


def before_and_after(now: datetime) -> tuple[Stretch, Stretch] | None:
    """Equally long times under the policy before and under the one that decides now.

    At most `LONGEST`; None before the first switch.
    """
    choices = list(PolicyChoice.objects.order_by("-id")[:2])
    if len(choices) < 2 or choices[0].name == choices[1].name:
        return None
    newest, earlier = choices
    length = min(now - newest.at, newest.at - earlier.at, LONGEST)
    if length <= timedelta():
        return None
    return (
        _stretch(earlier.name, newest.at - length, newest.at),
        _stretch(newest.name, newest.at, newest.at + length),
    )


def _stretch(policy: str, began: datetime, ended: datetime) -> Stretch:
    started = Job.objects.filter(first_started_at__gte=began, first_started_at__lt=ended)
    done = Job.objects.filter(ended_at__gte=began, ended_at__lt=ended, state=JobState.SUCCEEDED)
    waits = list(started.values_list("waited_s", flat=True))
    times = [span.total_seconds() for span in done.values_list(F("ended_at") - F("submitted_at"), flat=True)]
    return Stretch(
        policy=policy, began_at=began, ended_at=ended, started=len(waits), waited_s=_mean(waits),
        succeeded=len(times), jct_s=_mean(times),
        stops=Attempt.objects.filter(
            stopped_for__isnull=False, ended_at__gte=began, ended_at__lt=ended
        ).count(),
    )  # fmt: skip
