"""Figures of the cluster and of a person's jobs over a period.

The database aggregates them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Case, Count, F, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce, Greatest

from knowledge.core.data.measurement import OWN
from knowledge.models import Execution, Status
from portal.accounts.models import User
from scheduler.models import Allocation, Attempt, Gpu
from scheduler.selectors.analysis.histogram import Histogram, Values, histograms
from scheduler.selectors.analysis.period import (
    Period,
    Seconds,
    Spans,
    by_slice,
    counts_by_slice,
    first_of,
    unit_seconds,
)
from scheduler.selectors.jobs import visible_jobs
from scheduler.states import BAD_OUTCOMES, TERMINAL, JobState, Outcome

# Below this a job's slowdown says more about its shortness than about the queue (bounded slowdown,
# Feitelson and Rudolph, JSSPP 1998).
SHORT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How long jobs took and waited in a period.

    JCT and slowdown are of jobs that succeeded in it; the time in the queue is of those that first started in
    it.
    """

    jct_s: Histogram
    wait_s: Histogram
    slowdown: Histogram


def waiting(user: User, period: Period) -> Waiting:
    """Two queries over the user's visible jobs."""
    jobs = visible_jobs(user)
    ended = jobs.filter(period.holds("ended_at"), state=JobState.SUCCEEDED)
    started = jobs.filter(period.holds("first_started_at"))
    spans = {
        "jct_s": Values(rows=ended, value=Seconds(F("ended_at"), F("submitted_at"))),
        "wait_s": Values(rows=started, value=F("waited_s")),
        "slowdown": _slowdown(_attempts(user, period)),
    }
    found = histograms(spans)
    return Waiting(**{name: found.get((name, ""), Histogram()) for name in spans})


def _slowdown(attempts: QuerySet[Attempt]) -> Values:
    """Return the distribution of JCT over the time of all attempts.

    It is of the jobs that succeeded with one of these attempts, which is a job's last one.
    """
    last = attempts.filter(outcome=Outcome.SUCCEEDED)
    lasted = Seconds(F("ended_at"), F("created_at"))
    all_of_job = Attempt.objects.filter(job=OuterRef("job")).order_by().values("job")
    # Most jobs need one attempt; only the others are looked up one by one.
    run = Case(When(fence=1, then=lasted), default=Subquery(all_of_job.annotate(s=Sum(lasted)).values("s")))
    jct = Seconds(F("job__ended_at"), F("job__submitted_at"))
    slowdown = Greatest(jct / Greatest(run, Value(SHORT_S)), Value(1.0))
    return Values(rows=last, value=slowdown, always_known=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """GPU-seconds by slice, as offered and as held.

    They are offered by registered nodes, held by anybody, and held by the user's jobs.
    """

    offered: list[float]
    held: list[float]
    own: list[float] | None  # None for administrators, whose jobs are everybody's


def utilisation(user: User, period: Period, now: datetime) -> Utilisation:
    """Return the utilisation up to `now` in one query.

    A node offers each of its GPUs from the day it joined with it, lost or not.
    """
    own = Allocation.objects.filter(claim__attempt__job__in=visible_jobs(user).values("pk"))
    held = {"held": Allocation.objects.all()} | ({} if user.is_admin else {"own": own})
    spans = {name: Spans(rows, "allocated_at", "released_at") for name, rows in held.items()}
    gpus = Gpu.objects.annotate(
        came_at=Coalesce("since", "node__enrolled_at"), left_at=Coalesce("gone_at", "node__removed_at")
    )
    spans["offered"] = Spans(gpus, "came_at", "left_at")
    found = unit_seconds(spans, period, now)
    return Utilisation(offered=found["offered"], held=found["held"], own=found.get("own"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How many jobs ended.

    They are counted by final state in each slice; jobs that failed for good also by class of
    failure.
    """

    by_state: dict[str, list[int]]
    failures: dict[str, int]


def ended(user: User, period: Period) -> Ended:
    """Count the ends of the user's visible jobs; one query."""
    jobs = visible_jobs(user).filter(state__in=TERMINAL)
    found = counts_by_slice(jobs, "ended_at", period, "state", "failure_class")
    failures: Counter[str] = Counter()
    for _, (state, kind), n in found:
        if state == JobState.FAILED:
            failures[kind] += n
    by_state = {
        final.value: by_slice(period, [(number, n) for number, (state, _), n in found if state == final])
        for final in sorted(TERMINAL, key=list(JobState).index)
    }
    return Ended(by_state=by_state, failures=dict(failures))


class FailedAttempts(NamedTuple):
    """How many attempts ended badly for one cause.

    cause, failure_class: empty where the log has not been read; the outcome says it then.
    """

    outcome: str
    cause: str
    failure_class: str
    attempts: int


def failed_attempts(user: User, period: Period) -> list[FailedAttempts]:
    """Attempts that ended badly, tried again or not; most frequent first."""
    ended = _attempts(user, period).filter(outcome__in=BAD_OUTCOMES)
    by = ("outcome", "failure__cause", "failure__failure_class")
    rows = ended.order_by().values_list(*by).annotate(n=Count("pk"))
    found = [FailedAttempts(outcome, cause or "", kind or "", n) for outcome, cause, kind, n in rows]
    return sorted(found, key=lambda one: (-one.attempts, one.cause, one.outcome))


def throughput_by_gpu(user: User, period: Period) -> dict[str, Histogram]:
    """Tokens per second and GPU of the attempts that ran, by GPU model; two queries."""
    of_attempts = Execution.objects.filter(
        source=OWN, status=Status.OK, attempt_id__in=_attempts(user, period).values("pk")
    )
    per_gpu = F("tokens_per_second") / F("number_gpus")
    found = histograms({"rate": Values(rows=of_attempts, value=per_gpu, by="gpu_model")})
    return {model: one for (_, model), one in found.items()}


def first_submission(user: User) -> datetime | None:
    """When the oldest job that the user may see was submitted."""
    return first_of(visible_jobs(user), "submitted_at")


def _attempts(user: User, period: Period) -> QuerySet[Attempt]:
    ended = Attempt.objects.filter(period.holds("ended_at"))
    return ended if user.is_admin else ended.filter(job__in=visible_jobs(user).values("pk"))
