"""A team's receipt: GPU time guaranteed, used, lent and borrowed in a period."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q

from portal.accounts.models import Team
from scheduler.core.limits import ALL_MODELS, NO_TEAM
from scheduler.core.quotas.receipt import GpuSpan, Receipt, receipts
from scheduler.models import Allocation, TeamQuota
from scheduler.selectors.analysis.period import Period


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUsage:
    """A team's due and its use of a GPU model, or (empty) of all together.

    days: the same for each of the slices of the period. quotas: some team had one then.
    """

    gpu_model: str
    total: Receipt
    quotas: bool
    days: list[Receipt]


def team_usage(team: Team, period: Period, now: datetime) -> list[TeamUsage]:
    """The use of all models together, and of each that some team was guaranteed.

    Allocations count from their start to their release, or to `now`. It takes two queries.
    """
    start, end = period.start.timestamp(), min(period.end, now).timestamp()
    owed: dict[str, list[GpuSpan]] = defaultdict(list)
    quotas = TeamQuota.objects.filter(Q(until__isnull=True) | Q(until__gt=period.start))
    for row in quotas.filter(since__lt=period.end):
        until = row.until.timestamp() if row.until else end
        owed[row.gpu_model].append(GpuSpan(str(row.team_id), row.since.timestamp(), until, row.guaranteed))
    held = _held(Period(period.start, min(period.end, now)), None if owed else team)
    edges = [min(slice_.timestamp(), end) for slice_ in period.slices] + [end]
    any_quota = bool(owed)
    return [
        _usage(str(team.pk), model, held[model], owed[model], edges, quotas=any_quota)
        for model in sorted({ALL_MODELS, *owed})
        if start < end
    ]


def _held(period: Period, only: Team | None) -> dict[str, list[GpuSpan]]:
    """Allocations by GPU model, of one team or of all.

    The holdings of others matter only for GPUs that were lent to them.
    """
    allocations = Allocation.objects.filter(
        Q(released_at__isnull=True) | Q(released_at__gt=period.start), allocated_at__lt=period.end
    )
    if only:
        allocations = allocations.filter(claim__attempt__job__team=only)
    rows = allocations.values_list(
        "claim__attempt__job__team_id", "gpu__model", "allocated_at", "released_at"
    )
    held: dict[str, list[GpuSpan]] = defaultdict(list)
    for team, model, begun, ended in rows:
        span = GpuSpan(str(team) if team else NO_TEAM, begun.timestamp(), (ended or period.end).timestamp())
        held[model].append(span)
        held[ALL_MODELS].append(span)
    return held


def _usage(
    team: str, model: str, held: list[GpuSpan], owed: list[GpuSpan], edges: list[float], *, quotas: bool
) -> TeamUsage:
    days = receipts(held, owed, team, edges)
    if not quotas:  # nothing to lend, and nobody to borrow from
        days = [replace(day, borrowed_s=0.0) for day in days]
    total = Receipt(
        guaranteed_s=sum(day.guaranteed_s for day in days),
        used_s=sum(day.used_s for day in days),
        lent_s=sum(day.lent_s for day in days),
        borrowed_s=sum(day.borrowed_s for day in days),
    )
    return TeamUsage(gpu_model=model, total=total, quotas=quotas, days=days)
