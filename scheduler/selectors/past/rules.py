"""The rules of a time: policies, quotas, limits and windows, for the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from scheduler.core.limits import NO_TEAM, Limits, Quota, UserLimit, Window
from scheduler.core.policies import POLICIES
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.types import Policy
from scheduler.models import MaintenanceWindow, PersonLimit, PolicyChoice, TeamQuota
from scheduler.selectors.trace import group_of, user_of
from scheduler.simulator.settings import RuleChange


def past_policies(begin: datetime, end: datetime) -> list[tuple[float, Policy]]:
    """The policies that decided, each with the time of its choice.

    Times are in s from the beginning. The first one decided already then.
    """
    chosen = PolicyChoice.objects.order_by("id")
    before = chosen.filter(at__lte=begin).last()
    name, given = (before.name, before.parameters) if before else (str(settings.POLICY), {})
    found = [(0.0, with_parameters(POLICIES[name], given))]
    for one in chosen.filter(at__gt=begin, at__lt=end):
        if one.name in POLICIES:
            policy = with_parameters(POLICIES[one.name], one.parameters)
            found.append(((one.at - begin).total_seconds(), policy))
    return found


def past_limits(begin: datetime, end: datetime, people: set[int]) -> tuple[Limits, list[RuleChange]]:
    """Quotas as they were, and how they changed; limits of people as they are now.

    GPU-hours of a month are not among them.
    """
    rows = TeamQuota.objects.filter(since__lt=end).filter(Q(until=None) | Q(until__gt=begin))
    quotas = list(rows.order_by("team_id", "gpu_model", "since"))
    limits = {row.user_id: row for row in PersonLimit.objects.filter(Q(user__in=people) | Q(user=None))}
    users = tuple(
        UserLimit(user=user_of(person), running_jobs=row.running_jobs, gpus=row.gpus)
        for person in sorted(people)
        if (row := limits.get(person) or limits.get(None)) and {row.running_jobs, row.gpus} != {None}
    )

    def at(moment: datetime) -> Limits:
        held = (row for row in quotas if row.since <= moment and (row.until is None or row.until > moment))
        return Limits(quotas=tuple(map(_quota, held)), users=users)

    moments = {moment for row in quotas for moment in (row.since, row.until) if moment}
    changes = [
        RuleChange(at=(moment - begin).total_seconds(), limits=at(moment))
        for moment in sorted(moments)
        if begin < moment < end
    ]
    return at(begin), changes


def _quota(row: TeamQuota) -> Quota:
    return Quota(
        team=group_of(row.team_id), gpu_model=row.gpu_model, guaranteed=row.guaranteed,
        borrow_limit=row.borrow_limit, lending_limit=row.lending_limit,
    )  # fmt: skip


def past_windows(begin: datetime, end: datetime, names: Mapping[str, tuple[str, ...]]) -> tuple[Window, ...]:
    """The windows of that time that were not taken back.

    names: of each node in the simulation.
    """
    lead = timedelta(seconds=settings.WINDOW_LEAD_S)
    rows = MaintenanceWindow.objects.filter(ends_at__gt=begin, begins_at__lt=end).prefetch_related("nodes")
    return tuple(
        Window(
            closes_at=max(0.0, (row.begins_at - lead - begin).total_seconds()),
            ends_at=(row.ends_at - begin).total_seconds(),
            nodes=frozenset(name for node in row.nodes.all() for name in names.get(node.pk, ())),
            team=group_of(row.team_id) if row.team_id else NO_TEAM,
        )
        for row in rows
    )
