"""The queue played ahead in a worker of its own: forecasts of all waiting jobs.

It reads what a tick reads and decides nothing. Rows keep the newest forecast of each job, and its first one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from knowledge.core.domain.types import Goal, Interval
from portal.events.models import Event
from portal.events.types import CHANGES
from scheduler.core.ahead.forecast import Forecast, calibrated, forecasts, play_all
from scheduler.core.ahead.play_input import PastArrivals, PlayInput
from scheduler.core.limits import NO_TEAM
from scheduler.core.types import GpuId, JobInfo
from scheduler.loop.snapshot import take_snapshot
from scheduler.models import Attempt, Decision, Epoch, Job, StartForecast
from scheduler.selectors.figures.start_forecasts import judged_forecasts
from scheduler.selectors.policy import live_policy
from scheduler.services.forecasts.cpu_budget import CpuBudget
from scheduler.states import JobState

log = logging.getLogger(__name__)
REPEAT = timedelta(minutes=1)  # forecasts are made anew after it, although nothing was decided
PAST = timedelta(days=14)  # whose arrivals are resampled
PAST_JOBS = 1000


def forecast_starts(now: datetime) -> int:
    """Play the queue ahead, if something was decided or came since the last time.

    Returns the number of jobs that have a forecast.
    """
    if not _due(now):
        return 0
    given = play_input(now)
    plays = play_all(given, more=CpuBudget(settings.FORECAST_CPU_S).of_play)
    found = forecasts(given, plays, calibrated(judged_forecasts(given.policy.name)))
    _keep(found, given, now)
    return len(found)


def _due(now: datetime) -> bool:
    waiting = Job.objects.filter(state=JobState.QUEUED)
    if not waiting.exists():
        return False
    made = StartForecast.objects.filter(first=False).order_by("-made_at")
    last = made.values_list("made_at", flat=True).first()
    if last is None or now - last >= REPEAT or waiting.filter(state_since__gt=last).exists():
        return True
    changed = Event.objects.filter(subject__in=waiting.values("pk"), type__in=CHANGES, at__gt=last)
    return changed.exists() or Decision.objects.filter(at__gt=last).exists()


def play_input(now: datetime) -> PlayInput:
    """The facts at `now` of the live cluster under the live policy."""
    policy, epoch = live_policy().policy, Epoch.objects.first()
    memory = epoch.memory.get(policy.name, {}) if epoch else {}
    return PlayInput(
        state=take_snapshot(memory, now),
        now=now.timestamp(),
        policy=policy,
        left=_left(now),
        past=_past(now),
        decided_at=epoch.round_at.timestamp() if epoch and epoch.round_at and memory else None,
    )


def _left(now: datetime) -> dict[str, Interval]:
    """The time left to running jobs, where they have measured it."""
    found = {}
    live = Attempt.objects.filter(ended_at__isnull=True)
    for attempt in live.only("job_id", "progress", "created_at", "queued_s"):
        left = attempt.left(now)
        if left is not None:
            found[attempt.job_id] = left
    return found


def _past(now: datetime) -> PastArrivals:
    """The jobs of the last weeks, as they were promised when they came."""
    rows = Job.objects.filter(submitted_at__gt=now - PAST, submitted_at__lte=now).order_by("-submitted_at")
    newest = list(
        rows.only("id", "submitted_at", "promise", "goal", "priority", "owner_id", "team_id")[:PAST_JOBS]
    )
    jobs = tuple(_as_submitted(job) for job in reversed(newest) if job.promise)
    begins_at = jobs[0].submitted_at if jobs else now.timestamp()
    return PastArrivals(begins_at=begins_at, ends_at=now.timestamp(), jobs=jobs)


def _as_submitted(job: Job) -> JobInfo:
    return JobInfo(
        id=job.pk,
        submitted_at=job.submitted_at.timestamp(),
        options=(job.promised,) if job.promised else (),
        goal=Goal(job.goal),
        priority=job.priority,
        user=str(job.owner_id),
        team=str(job.team_id) if job.team_id else NO_TEAM,
    )


def _keep(found: Mapping[str, Forecast], given: PlayInput, now: datetime) -> None:
    """Keep the newest forecast of each job that waits, and its first one."""
    rows = [_row(job, forecast, given, now) for job, forecast in found.items()]
    with transaction.atomic():
        StartForecast.objects.filter(first=False).exclude(job__in=found).delete()
        there = set(Job.objects.filter(pk__in=found, state=JobState.QUEUED).values_list("pk", flat=True))
        new = [row for row in rows if row.job_id in there]
        StartForecast.objects.bulk_create(
            new, update_conflicts=True, unique_fields=["job", "first"], update_fields=KEPT
        )
        # Of a job that ran before, the next start is no promise that was made at its submission.
        unstarted = Job.objects.filter(pk__in=there, first_started_at__isnull=True).only("pk")
        firsts = [_row(job.pk, found[job.pk], given, now, first=True) for job in unstarted]
        StartForecast.objects.bulk_create(firsts, ignore_conflicts=True)
    log.info("queue played ahead", extra={"jobs": len(new), "policy": given.policy.name})


KEPT = [
    "made_at", "policy", "plays", "start_at", "start_low", "start_high", "end_at", "end_low", "end_high",
    "gpus",
]  # fmt: skip


def _row(
    job: str, forecast: Forecast, given: PlayInput, now: datetime, *, first: bool = False
) -> StartForecast:
    end = forecast.end or Interval(0.0)
    return StartForecast(
        job_id=job, first=first, made_at=now, policy=given.policy.name, plays=forecast.plays,
        start_at=_at(forecast.start.value) or now, start_low=_at(forecast.start.low) or now,
        start_high=_at(forecast.start.high),
        end_at=_at(end.value) if forecast.end else None, end_low=_at(end.low), end_high=_at(end.high),
        gpus=_by_node(forecast.gpus),
    )  # fmt: skip


def _by_node(gpus: Iterable[GpuId]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for node, index in sorted(gpus):
        found.setdefault(node, []).append(index)
    return found


def _at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)
