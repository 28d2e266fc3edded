"""Texts that change with what a request waits for, read for many at once."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from django.db.models import Sum

from scheduler.models import Claim, Job


class Aspect(StrEnum):
    """What of a job changes."""

    STATE = "state"  # and its terms: every event
    PROGRESS = "progress"
    LOG = "log"


class Watched(NamedTuple):
    """One aspect of one job."""

    job: str
    aspect: Aspect


def signs_of(watched: Collection[Watched]) -> dict[Watched, str]:
    """A text for each, in two queries at most; nothing for a job that is gone."""
    jobs = {one.job for one in watched}
    found = {pk: (version, step) for pk, version, step in _jobs(jobs)}
    logs = _log_bytes({one.job for one in watched if one.aspect is Aspect.LOG})
    return {
        one: _sign(one.aspect, *found[one.job], logs.get(one.job, 0)) for one in watched if one.job in found
    }


def _jobs(jobs: Collection[str]) -> Collection[tuple[str, int, int]]:
    return Job.objects.filter(pk__in=jobs).order_by().values_list("pk", "version", "step")


def _log_bytes(jobs: Collection[str]) -> dict[str, int]:
    if not jobs:
        return {}
    rows = Claim.objects.filter(attempt__job__in=jobs).order_by().values("attempt__job")
    return dict(rows.annotate(bytes=Sum("log_bytes")).values_list("attempt__job", "bytes"))


def _sign(aspect: Aspect, version: int, step: int, log_bytes: int) -> str:
    return {
        Aspect.STATE: f"{version}",
        Aspect.PROGRESS: f"{version}.{step}",
        Aspect.LOG: f"{version}.{log_bytes}",
    }[aspect]
