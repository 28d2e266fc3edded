"""Use and cost of jobs in a period: by team, by person and by node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import TypeVar

from django.db.models import Q

from portal.accounts.models import Team, User
from scheduler.core.spending import Spent
from scheduler.models import Allocation, Node
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.figures.cost import GpuCost, gpu_costs, totals
from scheduler.selectors.jobs import visible_jobs

Key = TypeVar("Key", int | None, int, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLine:
    """The use of a group of jobs.

    id: of the team, person or node; None for jobs of no team, and for the sum of all. cost: None where
    no GPU had a price.
    """

    id: str | None
    name: str
    jobs: int
    gpu_s: float
    cost: Spent | None

    @property
    def gpu_hours(self) -> float:
        return self.gpu_s / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The same allocations summed up in several ways.

    The most expensive group comes first, then the largest.
    """

    by_team: list[SpendingLine]
    by_person: list[SpendingLine]
    by_node: list[SpendingLine]
    total: SpendingLine


def visible_spending(user: User, period: Period, now: datetime) -> Spending:
    """Sum up what the jobs that the user may see used in the period.

    Each GPU is cut to it, and counts up to `now` where the period reaches beyond; it takes six queries.
    """
    end = min(period.end, now)
    held = Allocation.objects.filter(
        Q(released_at__isnull=True) | Q(released_at__gt=period.start), allocated_at__lt=end
    )
    if not user.is_admin:
        held = held.filter(claim__attempt__job__in=visible_jobs(user).values("pk"))
    costs = gpu_costs(held, end, since=period.start)
    teams = dict(Team.objects.filter(pk__in={one.team for one in costs}).values_list("pk", "name"))
    people = dict(User.objects.filter(pk__in={one.owner for one in costs}).values_list("pk", "username"))
    nodes = dict(Node.objects.filter(pk__in={one.node for one in costs}).values_list("pk", "name"))
    return Spending(
        by_team=_lines(costs, lambda one: one.team, lambda team: teams.get(team, "") if team else ""),
        by_person=_lines(costs, lambda one: one.owner, lambda owner: people[owner]),
        by_node=_lines(costs, lambda one: one.node, lambda node: nodes[node]),
        total=_line(None, "", costs),
    )


def _lines(
    costs: Iterable[GpuCost], by: Callable[[GpuCost], Key], name: Callable[[Key], str]
) -> list[SpendingLine]:
    groups: dict[Key, list[GpuCost]] = defaultdict(list)
    for one in costs:
        groups[by(one)].append(one)
    found = [_line(None if key is None else str(key), name(key), some) for key, some in groups.items()]
    return sorted(found, key=lambda line: (-(line.cost.amount if line.cost else 0.0), -line.gpu_s, line.name))


def _line(key: str | None, name: str, costs: list[GpuCost]) -> SpendingLine:
    return SpendingLine(
        id=key,
        name=name,
        jobs=len({one.job for one in costs}),
        gpu_s=fsum(one.held_s for one in costs),
        cost=totals(costs, lambda _: None).get(None),
    )
