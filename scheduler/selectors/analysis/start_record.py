"""Promised starts compared with actual ones, of the jobs that a person may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from portal.accounts.models import User
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.figures.start_forecasts import PROMISED, StartPromise, judged_starts
from scheduler.selectors.jobs import visible_jobs

LATEST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StartVerdict:
    """How the promised starts under one policy turned out.

    judged: starts whose promise had both bounds. error_s, waited_s: medians of the absolute error, and of the
    time from the promise to the start.
    """

    policy: str
    starts: int
    judged: int
    inside: int
    error_s: float
    waited_s: float


def start_verdicts(user: User, period: Period) -> list[StartVerdict]:
    """Judge the latest starts in the period, at most LATEST, by policy; one query."""
    rows = judged_starts().filter(period.holds("job__first_started_at"), job__in=visible_jobs(user))
    found: dict[str, list[StartPromise]] = defaultdict(list)
    columns = ("policy", *PROMISED, "job__first_started_at")
    for policy, *values in rows.order_by("-job__first_started_at").values_list(*columns)[:LATEST]:
        found[policy].append(StartPromise(*values))
    return [_verdict(policy, found[policy]) for policy in sorted(found)]


def _verdict(policy: str, promises: Sequence[StartPromise]) -> StartVerdict:
    kept = [one.inside for one in promises]
    waited = [one.waited_s or 0.0 for one in promises]
    return StartVerdict(
        policy=policy,
        starts=len(promises),
        judged=sum(one is not None for one in kept),
        inside=sum(one is True for one in kept),
        error_s=median(abs(one.interval.value - s) for one, s in zip(promises, waited, strict=True)),
        waited_s=median(waited),
    )
