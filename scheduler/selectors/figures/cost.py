"""The cost of jobs.

Each GPU counts from its allocation to its release, at the prices that held meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import Any, Protocol, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from knowledge.core.domain.cost import cost
from scheduler.core.spending import Price, Spent, spent
from scheduler.models import Allocation, Attempt, Job, NodePrice
from scheduler.selectors.figures.times import Ending
from scheduler.states import TERMINAL

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
    per_hour: float  # its price while it is held; 0 once it was released


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """What a job cost so far, and what an hour of the GPUs that it holds costs."""

    spent: Spent
    per_hour: float = 0.0

    def in_all(self, left_s: float) -> float:
        """What it will have cost if it goes on for so long where it is."""
        return self.spent.amount + cost(left_s, self.per_hour)


def gpu_costs(
    allocations: QuerySet[Allocation], now: datetime, *, since: datetime | None = None
) -> list[GpuCost]:
    """Return the cost of each allocation up to `now`, in two queries.

    It counts from `since` on if that is given.
    """
    return _costs_of(list(allocations.order_by("pk").values_list(*COLUMNS)), now, since)


def _costs_of(rows: Sequence[tuple[Any, ...]], now: datetime, since: datetime | None = None) -> list[GpuCost]:
    """The same of rows of COLUMNS, in one query."""
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
                per_hour=prices[node][-1].per_hour if released_at is None and prices[node] else 0.0,
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
    return {key: one.spent for key, one in costs_so_far(jobs, now).items()}


def costs_so_far(jobs: Iterable[KeyedJob], now: datetime) -> dict[str, JobCost]:
    """The same with the price of the GPUs that each job holds; two queries."""
    return _by_job(
        gpu_costs(Allocation.objects.filter(claim__attempt__job__in=[job.pk for job in jobs]), now)
    )


def cost_so_far(job: Job, now: datetime) -> JobCost | None:
    """Return the same of one job that was read by `get_job`.

    None where no GPU had a price.

    It takes one query, and none where it was asked at the same moment before.
    """
    kept: dict[datetime, JobCost | None] = job.__dict__.setdefault("_cost_so_far", {})
    if now not in kept:
        rows = [
            (
                job.pk,
                job.team_id,
                job.owner_id,
                attempt.pk,
                held.gpu.node_id,
                held.allocated_at,
                held.released_at,
            )
            for attempt in job.attempts.all()
            for claim in attempt.claims.all()
            for held in claim.allocations.all()
        ]
        kept[now] = _by_job(_costs_of(rows, now)).get(job.pk) if rows else None
    return kept[now]


def _by_job(held: Sequence[GpuCost]) -> dict[str, JobCost]:
    rates: dict[str, float] = defaultdict(float)
    for one in held:
        rates[one.job] += one.per_hour
    spent = totals(held, lambda one: one.job)
    return {key: JobCost(spent=amount, per_hour=rates[key]) for key, amount in spent.items()}


def expected_cost(job: Job, cost: JobCost | None, ending: Ending | None) -> float | None:
    """Return what the job will have cost in all.

    Of one that has not held a GPU yet it is what was promised.

    None where its end or a price is not known, and once it has ended.
    """
    if cost is not None:
        return cost.in_all(ending.left.value) if ending else None
    if job.state in TERMINAL or any(attempt.ended_at is None for attempt in job.attempts.all()):
        return None
    return promised.cost.value or None if (promised := job.promised) else None


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
