"""The cost of jobs.

Each GPU counts from its allocation to its release, at the prices that held meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import Protocol, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from scheduler.core.spending import Price, Spent, spent
from scheduler.models import Allocation, Attempt, Job, NodePrice

COLUMNS = (
    "claim__attempt__job_id", "claim__attempt__job__team_id", "claim__attempt__job__owner_id",
    "claim__attempt_id", "gpu__node_id", "allocated_at", "released_at",
)  # fmt: skip
Key = TypeVar("Key", bound=Hashable)


class KeyedJob(Protocol):
    """A job, or columns of one."""

    @property
    def pk(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCost:
    """The cost of one allocation, how long it held its GPU (s), and its owner."""

    job: str
    team: int | None
    owner: int
    attempt: UUID
    node: str
    held_s: float
    spent: Spent


def gpu_costs(
    allocations: QuerySet[Allocation], now: datetime, *, since: datetime | None = None
) -> list[GpuCost]:
    """Return the cost of each allocation up to `now`, in two queries.

    It counts from `since` on if that is given.
    """
    rows = list(allocations.order_by("pk").values_list(*COLUMNS))
    prices = _prices({node for *_, node, _, _ in rows})
    costs = []
    for job, team, owner, attempt, node, allocated_at, released_at in rows:
        start, end = max(allocated_at, since or allocated_at), min(released_at or now, now)
        costs.append(
            GpuCost(
                job=job,
                team=team,
                owner=owner,
                attempt=attempt,
                node=node,
                held_s=max(0.0, (end - start).total_seconds()),
                spent=spent(start, end, prices[node]),
            )
        )
    return costs


def costs_of_job(job: Job, now: datetime) -> list[GpuCost]:
    """The cost of each GPU that the job held, of all its attempts; two queries."""
    return gpu_costs(Allocation.objects.filter(claim__attempt__job=job), now)


def job_costs(jobs: Iterable[KeyedJob], now: datetime) -> dict[str, Spent]:
    """Return what each job cost by `now`, all its attempts together.

    A job that held no priced GPU is left out.
    """
    held = Allocation.objects.filter(claim__attempt__job__in=[job.pk for job in jobs])
    return totals(gpu_costs(held, now), lambda one: one.job)


def totals(costs: Iterable[GpuCost], by: Callable[[GpuCost], Key]) -> dict[Key, Spent]:
    """Sum costs by job, team, node or whatever else they belong to.

    Groups that cost nothing are left out. Nothing is rounded before it is shown, so sums of different kinds
    agree.
    """
    groups: dict[Key, list[Spent]] = defaultdict(list)
    for one in costs:
        if one.spent.amount:
            groups[by(one)].append(one.spent)
    return {
        key: Spent(fsum(part.amount for part in parts), any(part.estimated for part in parts))
        for key, parts in groups.items()
    }


def hourly_price(attempt: Attempt, now: datetime) -> float:
    """The price of an hour of all GPUs of the attempt, now or when it ended.

    Two queries. It is 0 where none had a price.
    """
    at = attempt.ended_at or now
    held = Allocation.objects.filter(claim__attempt=attempt).values_list("gpu__node_id", flat=True)
    nodes = list(held)
    prices = _prices(set(nodes))
    known = {node: [price.per_hour for price in found if price.since <= at] for node, found in prices.items()}
    return fsum(known[node][-1] for node in nodes if known.get(node))


def _prices(nodes: Iterable[str]) -> dict[str, list[Price]]:
    found: dict[str, list[Price]] = defaultdict(list)
    for row in NodePrice.objects.filter(node__in=nodes).order_by("pk"):
        price = Price(since=row.since, per_hour=row.price_per_gpu_hour, estimated=row.estimated)
        found[row.node_id].append(price)
    return found
