"""Quotas of teams and limits of people, set by administrators.

A limit that is lowered stops nobody: it counts for what starts from the next tick on. GPUs that are kept for
jobs when one changes are free again, and the next tick decides about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue import UnknownGpu
from portal.accounts.models import Team, User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EVERYBODY, EventType, subject
from scheduler import hints
from scheduler.core.job_terms import MOST_RUN_S
from scheduler.core.limits import ALL_MODELS
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Job, PendingStart, PersonLimit, TeamQuota
from scheduler.selectors.cluster.inventory import inventory_models
from scheduler.selectors.quotas import hours_limits, month_start, used_this_month
from scheduler.states import LIVE, PriorityClass

MOST_USED = 0.8  # the share of the month's GPU-hours of which people are told
NAMED = 3  # GPU models that a refusal names
MOST_GPUS = 1_000_000
MOST_HOURS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaValues:
    """A team's guarantee of a GPU model, or (empty) of all together."""

    gpu_model: str = ""
    guaranteed: int
    borrow_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitValues:
    """The most that a person's jobs may hold; None: any amount."""

    running_jobs: int | None = None
    gpus: int | None = None
    gpu_hours_month: float | None = None
    max_class: int = PriorityClass.NORMAL
    max_run_s: int | None = None  # of each job


@transaction.atomic
def set_quotas(*, team: Team, quotas: list[QuotaValues], actor: User, now: datetime) -> None:
    """Let these be the team's quotas, and no others.

    Quotas that stay the same are left alone. Raises BadParameters naming the quota, NotAllowed, Conflict.
    """
    require_admin(actor)
    quotas = _by_key(quotas)
    _check_quotas(team, quotas)
    if not Team.objects.select_for_update(no_key=True).filter(pk=team.pk).exists():
        raise Conflict("The team has just been deleted.")
    wanted, ended = {values.gpu_model: values for values in quotas}, 0
    for row in TeamQuota.objects.filter(team=team, until__isnull=True):
        if wanted.get(row.gpu_model) == _values(row):
            del wanted[row.gpu_model]
        else:
            row.until = now
            row.save(update_fields=["until"])
            ended += 1
    TeamQuota.objects.bulk_create(
        TeamQuota(team=team, since=now, **asdict(values)) for values in wanted.values()
    )
    if wanted or ended:
        _give_up(PendingStart.objects.all(), "The quota of a team was changed.", now)
    data = {"name": team.name, "quotas": [asdict(values) for values in quotas]}
    if wanted or ended:
        _changed(subject("team", team.pk), data, actor, now)
    audit(action="quotas set", actor=actor, target=f"team {team.pk}", data=data, now=now)
    hints.tick()


@transaction.atomic
def put_quota(*, team: Team, values: QuotaValues, actor: User, now: datetime) -> None:
    """Set one quota, beside the team's others.

    Raises BadParameters, NotAllowed, Conflict.
    """
    (values,) = _by_key([values])
    _check_quotas(team, [values], prefix="")
    others = [quota for quota in _in_force(team) if quota.gpu_model != values.gpu_model]
    set_quotas(team=team, quotas=[*others, values], actor=actor, now=now)


@transaction.atomic
def remove_quota(*, team: Team, gpu_model: str, actor: User, now: datetime) -> None:
    """End the team's quota of a model; nothing changes if it has none.

    Raises NotAllowed, Conflict.
    """
    others = [quota for quota in _in_force(team) if quota.gpu_model != gpu_model]
    set_quotas(team=team, quotas=others, actor=actor, now=now)


def _by_key(quotas: list[QuotaValues]) -> list[QuotaValues]:
    """The quotas under the catalogue's names of GPU models, as nodes are registered."""
    catalogue = portal_catalogue()
    return [replace(values, gpu_model=catalogue.gpu_key(values.gpu_model)) for values in quotas]


def _in_force(team: Team) -> list[QuotaValues]:
    return [_values(row) for row in TeamQuota.objects.filter(team=team, until__isnull=True)]


@transaction.atomic
def set_limit(*, user: User | None, values: LimitValues | None, actor: User, now: datetime) -> None:
    """Set the limits of a person, or (user None) of everybody else; None removes them.

    Raises BadParameters, NotAllowed.
    """
    require_admin(actor)
    if values is None:
        PersonLimit.objects.filter(user=user).delete()
    else:
        _check_limit(values)
        PersonLimit.objects.update_or_create(user=user, defaults=asdict(values))
    starts = PendingStart.objects.filter(job__owner=user) if user else PendingStart.objects.all()
    _give_up(starts, "Its owner's limits were changed.", now)
    data = asdict(values) if values else {}
    _changed(subject("user", user.pk) if user else EVERYBODY, {"limits": data or None}, actor, now)
    target = f"user {user.get_username()}" if user else "everybody"
    audit(action="limits set" if values else "limits removed", actor=actor, target=target, data=data, now=now)
    hints.tick()


def _changed(of: str, data: Mapping[str, Any], actor: User, now: datetime) -> None:
    record([Event(subject=of, type=EventType.QUOTA_CHANGED, data=dict(data), actor=actor, at=now)])


@transaction.atomic
def tell_used_hours(*, now: datetime) -> None:
    """Tell once a month of each person whose jobs have used most of their GPU-hours."""
    month = month_start(now)
    running = Job.objects.filter(state__in=LIVE).order_by().values_list("owner", flat=True).distinct()
    limits = hours_limits(list(running))
    # One call at a time: the rows are held, and the next one finds the events of this one.
    list(PersonLimit.objects.select_for_update().filter(pk__in={row.pk for row in limits.values()}))
    told = Event.objects.filter(type=EventType.BUDGET_80, at__gte=month).values_list("subject", flat=True)
    used = used_this_month(limits, now)
    events = []
    for person, row in limits.items():
        hours, limit = used.get(person, 0.0) / 3600, row.gpu_hours_month or 0.0
        if hours >= MOST_USED * limit > 0 and subject("user", person) not in told:
            data = {"month": f"{month:%Y-%m}", "used_gpu_hours": hours, "limit_gpu_hours": limit}
            events.append(Event(subject=subject("user", person), type=EventType.BUDGET_80, data=data, at=now))
    record(events)


def _give_up(starts: QuerySet[PendingStart], why: str, now: datetime) -> None:
    """Let starts that were decided before lapse; the next tick decides anew."""
    starts.update(expires_at=now, why_over=f"{why} Who gets these GPUs is decided anew.")


def _values(row: TeamQuota) -> QuotaValues:
    return QuotaValues(
        gpu_model=row.gpu_model,
        guaranteed=row.guaranteed,
        borrow_limit=row.borrow_limit,
        lending_limit=row.lending_limit,
    )


def _check_quotas(team: Team, quotas: list[QuotaValues], prefix: str = "quotas.{number}.") -> None:
    """Raise BadParameters for what is out of range, named twice, or unknown.

    A quota in force may outlive the last node of its model.
    """
    errors: dict[str, str] = {}
    seen: set[str] = set()
    kept = {ALL_MODELS, *(values.gpu_model for values in _in_force(team))}
    for number, values in enumerate(quotas):
        found = _out_of_range(asdict(values), ("guaranteed", "borrow_limit", "lending_limit"), MOST_GPUS)
        if values.gpu_model not in kept and (unknown := unknown_gpu(values.gpu_model)):
            found["gpu_model"] = unknown
        if values.gpu_model in seen:
            found["gpu_model"] = f"is named twice ({values.gpu_model or 'all models'}); give each model once"
        if values.lending_limit is not None and values.lending_limit > values.guaranteed:
            found.setdefault("lending_limit", "cannot exceed what is guaranteed; leave it empty to lend all")
        seen.add(values.gpu_model)
        errors |= {prefix.format(number=number) + field: message for field, message in found.items()}
    if errors:
        raise BadParameters(errors)


def unknown_gpu(name: str) -> str:
    """Why nobody knows GPUs of this model, with the nearest ones; empty if some do."""
    registered = inventory_models()
    if name in registered:
        return ""
    try:
        portal_catalogue().gpu(name)
    except UnknownGpu as unknown:
        near = unknown.suggestions or tuple(registered[:NAMED])
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"is neither in the catalogue nor on a registered node{hint}"
    return ""


def _check_limit(values: LimitValues) -> None:
    given = asdict(values)
    errors = _out_of_range(given, ("running_jobs", "gpus"), MOST_GPUS)
    errors |= _out_of_range(given, ("gpu_hours_month",), MOST_HOURS)
    if values.max_run_s is not None and not 1 <= values.max_run_s <= MOST_RUN_S:
        errors["max_run_s"] = f"must be between 1 and {MOST_RUN_S:,} seconds"
    if errors:
        raise BadParameters(errors)


def _out_of_range(given: Mapping[str, Any], fields: tuple[str, ...], most: float) -> dict[str, str]:
    return {
        field: f"must be between 0 and {most:,.0f}"
        for field in fields
        if given[field] is not None and not 0 <= given[field] <= most
    }
