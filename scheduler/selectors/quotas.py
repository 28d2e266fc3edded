"""Quotas and limits in force, and what people have used of theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from portal.accounts.models import Team, User
from scheduler.core.cycle.wait_reasons import counted_gpus
from scheduler.core.limits import ALL_MODELS, Limits, Quota, UserLimit
from scheduler.models import Allocation, Gpu, PersonLimit, TeamQuota
from scheduler.states import PriorityClass


def quotas_of(team: Team) -> QuerySet[TeamQuota]:
    """The team's quotas in force, that over all models first."""
    return TeamQuota.objects.filter(team=team, until__isnull=True).order_by("gpu_model")


def quota_warnings(team: Team) -> list[str]:
    """Warnings for administrators: guarantees beyond the cluster.

    Nodes come and go, so that they are no error.
    """
    present = Counter(Gpu.present.values_list("model", flat=True))
    present[ALL_MODELS] = present.total()
    owed: Counter[str] = Counter()
    for model, gpus in TeamQuota.objects.filter(until__isnull=True).values_list("gpu_model", "guaranteed"):
        owed[model] += gpus
    return [
        _warning(quota.gpu_model, owed[quota.gpu_model], present[quota.gpu_model])
        for quota in quotas_of(team)
        if owed[quota.gpu_model] > present[quota.gpu_model]
    ]


def _warning(model: str, owed: int, present: int) -> str:
    if model and not present:
        return f"No registered node has a GPU of the model {model}."
    have = "is" if present == 1 else "are"
    return f"All teams together are guaranteed {counted_gpus(owed, model)}, and {present} {have} registered."


def limit_of(user: User) -> PersonLimit | None:
    """The person's own limits, else those of everybody; None if there are neither."""
    rows = {row.user_id: row for row in PersonLimit.objects.filter(Q(user=user) | Q(user__isnull=True))}
    return rows.get(user.pk) or rows.get(None)


def default_limit() -> PersonLimit | None:
    """The limits of everybody without limits of their own."""
    return PersonLimit.objects.filter(user__isnull=True).first()


def highest_class(user: User) -> PriorityClass:
    """The highest class that the person may give to a job: any for administrators."""
    if user.is_admin:
        return max(PriorityClass)
    limit = limit_of(user)
    return PriorityClass(limit.max_class) if limit else PriorityClass.NORMAL


def longest_run_s(user: User) -> int | None:
    """How long each of the person's jobs may run; None: any time."""
    limit = limit_of(user)
    return limit.max_run_s if limit else None


def limits_in_force(people: Collection[int], now: datetime) -> Limits:
    """All quotas, and the limits of these people, for a decision at `now`.

    It takes two queries, and a third where GPU-hours are limited.
    """
    quotas = TeamQuota.objects.filter(until__isnull=True).order_by("team_id", "gpu_model")
    limits = _limits_of(people)
    used = used_this_month([one for one, row in limits.items() if row.gpu_hours_month is not None], now)
    return Limits(
        quotas=tuple(_quota(row) for row in quotas),
        users=tuple(_limit(person, row, used.get(person, 0.0)) for person, row in limits.items()),
    )


def hours_limits(people: Collection[int]) -> dict[int, PersonLimit]:
    """The limits of those of the people whose GPU-hours of a month are limited."""
    limits = _limits_of(people).items()
    return {person: row for person, row in limits if row.gpu_hours_month is not None}


def _limits_of(people: Collection[int]) -> dict[int, PersonLimit]:
    """Each person's own limits, else those of everybody."""
    rows = {row.user_id: row for row in PersonLimit.objects.filter(Q(user__in=people) | Q(user__isnull=True))}
    return {person: row for person in sorted(people) if (row := rows.get(person) or rows.get(None))}


def used_this_month(people: Iterable[int], now: datetime) -> dict[int, float]:
    """GPU-seconds that each person's jobs have held this month.

    It begins by the clock of the portal's zone.
    """
    people = list(people)
    if not people:
        return {}
    start = month_start(now)
    held = Allocation.objects.filter(claim__attempt__job__owner__in=people).filter(
        Q(released_at__isnull=True) | Q(released_at__gt=start)
    )
    # The GPUs of a claim are counted by the database: they come and go together, and are most of the rows.
    times = held.order_by().values_list("claim__attempt__job__owner_id", "allocated_at", "released_at")
    used: dict[int, float] = defaultdict(float)
    for person, begun, ended, gpus in times.annotate(gpus=Count("pk")):
        used[person] += gpus * max(0.0, (min(ended or now, now) - max(begun, start)).total_seconds())
    return used


def month_start(now: datetime) -> datetime:
    """When the month began, in the portal's zone."""
    local = now.astimezone(timezone.get_default_timezone())
    return local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _quota(row: TeamQuota) -> Quota:
    return Quota(
        team=str(row.team_id),
        gpu_model=row.gpu_model,
        guaranteed=row.guaranteed,
        borrow_limit=row.borrow_limit,
        lending_limit=row.lending_limit,
    )


def _limit(person: int, row: PersonLimit, used_s: float) -> UserLimit:
    hours = row.gpu_hours_month
    return UserLimit(
        user=str(person),
        running_jobs=row.running_jobs,
        gpus=row.gpus,
        gpu_s_left=None if hours is None else hours * 3600 - used_s,
    )
