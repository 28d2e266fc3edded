"""One job on rented nodes.

It says where the job ran, what that cost, what on-demand nodes alone would have cost, and how it stands
against its deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.core.domain.cost import cost
from knowledge.core.domain.wording import rough_time
from portal.events.types import EventType
from scheduler.core.market.types import NodeTerms
from scheduler.core.market_contracts import LATEST_SWITCH
from scheduler.models import Allocation, Attempt, Job, MarketDecision, Node
from scheduler.selectors.figures.cost import costs_of_job
from scheduler.selectors.markets.plans import JobPlans, kept_plans
from scheduler.states import LIVE, TERMINAL, JobState, Outcome

IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSpan:
    """The GPUs that the job held during a time.

    lane: idle, or the kind of its nodes. ended_at: None while it goes on.
    """

    lane: str
    began_at: datetime
    ended_at: datetime | None
    gpus: int
    nodes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMarket:
    """Money in the nodes' currency; None where no GPU had a price.

    on_demand_only: what the same GPU time would have cost at on-demand prices. interruptions: attempts that
    ended because a spot node went away. pace: the share of the work that is done; time: the share of the time
    that has passed. None without a deadline. planned: as planned at submission; None before that was kept.
    """

    spans: tuple[LaneSpan, ...]
    spent: float | None
    on_demand_only: float | None
    interruptions: int
    pace: float | None
    time: float | None
    next: str
    planned: JobPlans | None = None

    @property
    def saved(self) -> float | None:
        if self.spent is None or self.on_demand_only is None:
            return None
        return self.on_demand_only - self.spent

    @property
    def saved_share(self) -> float | None:
        """The share saved of the price of on-demand nodes alone."""
        saved = self.saved
        return None if saved is None or not self.on_demand_only else saved / self.on_demand_only


def job_market(job: Job, policy: str, now: datetime) -> JobMarket:
    """How the job does on rented nodes. policy: the name of the one that decides now."""
    attempts = list(job.attempts.prefetch_related("claims__node", "claims__allocations"))
    spans, costs = _spans(job, attempts, now), costs_of_job(job, now)
    prices = _on_demand_prices({one.node for one in costs})
    spent = sum(one.spent.amount for one in costs)
    on_demand = sum(
        cost(one.held_s, prices[one.node]) if one.node in prices else one.spent.amount for one in costs
    )
    return JobMarket(
        spans=spans,
        spent=spent if on_demand else None,
        on_demand_only=on_demand or None,
        interruptions=sum(_interrupted(attempt) for attempt in attempts),
        pace=_done(job) if job.deadline_at else None,
        time=_time_passed(job, now),
        next=_next(job, attempts, policy, now),
        planned=kept_plans(job.pk) if job.spot and job.deadline_at else None,
    )


def decisions_on_market(job: Job) -> list[MarketDecision]:
    """The job's decisions on markets, period by period."""
    return list(MarketDecision.objects.filter(job=job).select_related("market"))


def _on_demand_prices(nodes: Iterable[str]) -> Mapping[str, float]:
    rows = Node.objects.filter(pk__in=nodes, kind=NodeTerms.SPOT, market__isnull=False)
    return dict(rows.values_list("pk", "market__on_demand_price"))


def _spans(job: Job, attempts: Sequence[Attempt], now: datetime) -> tuple[LaneSpan, ...]:
    spans: list[LaneSpan] = []
    since = job.submitted_at
    for attempt in attempts:
        if attempt.created_at > since:
            spans.append(_idle(since, attempt.created_at))
        nodes = [claim.node for claim in attempt.claims.all()]
        kinds = {node.kind for node in nodes}
        spans.append(
            LaneSpan(
                lane=NodeTerms.SPOT if NodeTerms.SPOT in kinds else min(kinds, default=IDLE),
                began_at=attempt.created_at,
                ended_at=attempt.ended_at,
                gpus=Allocation.objects.filter(claim__attempt=attempt).count(),
                nodes=", ".join(sorted(node.name for node in nodes)),
            )
        )
        since = attempt.ended_at or now
    if job.state not in LIVE | TERMINAL:
        spans.append(_idle(since, None))
    return tuple(spans)


def _idle(began_at: datetime, ended_at: datetime | None) -> LaneSpan:
    return LaneSpan(lane=IDLE, began_at=began_at, ended_at=ended_at, gpus=0, nodes="")


def _interrupted(attempt: Attempt) -> bool:
    """Did it end since a spot node went away, announced or not?"""
    if attempt.outcome not in (Outcome.LOST, Outcome.STOPPED, Outcome.KILLED):
        return False
    spot = [claim.node for claim in attempt.claims.all() if claim.node.kind == NodeTerms.SPOT]
    if attempt.outcome == Outcome.LOST:
        return bool(spot)
    stops = attempt.job.events.filter(type=EventType.JOB_STOPPING, fence=attempt.fence)
    return bool(spot) and stops.filter(reason__contains="is withdrawn").exists()


def _done(job: Job) -> float:
    if job.state == JobState.SUCCEEDED:
        return 1.0
    return min(1.0, job.step / job.total_steps) if job.total_steps else 0.0


def _time_passed(job: Job, now: datetime) -> float | None:
    if job.deadline_at is None:
        return None
    whole = (job.deadline_at - job.submitted_at).total_seconds()
    until = job.ended_at or now
    return (until - job.submitted_at).total_seconds() / whole if whole > 0 else 1.0


def latest_switch(job: Job) -> datetime | None:
    """When it goes to on-demand nodes at the latest; None before any decision."""
    newest = MarketDecision.objects.filter(job=job).order_by("slot", "pk").last()
    at = newest.inputs.get(LATEST_SWITCH) if newest else None
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _next(job: Job, attempts: Sequence[Attempt], policy: str, now: datetime) -> str:
    if job.state in TERMINAL:
        return _ended(job)
    latest = latest_switch(job) if policy == "spot" else None
    slack = f"{rough_time(max(0.0, (latest - now).total_seconds()))} of slack left" if latest else ""
    live = next((attempt for attempt in attempts if attempt.ended_at is None), None)
    if live is not None:
        spot = any(claim.node.kind == NodeTerms.SPOT for claim in live.claims.all())
        if not spot:
            return "Runs on nodes that stay; nothing is to be decided."
        then = f"; {slack}" if slack else ""
        return f"Runs on spot nodes; if they go, it continues from its last checkpoint{then}."
    if not job.spot:
        return "Waits; it may not use spot nodes."
    if policy != "spot":
        return f"Waits for any node that it may use; the policy {policy} decides."
    if latest is None:
        return "Waits for spot nodes."
    by = latest.isoformat(timespec="minutes")
    return f"Waits for spot nodes: {slack}; it goes to on-demand nodes at {by} at the latest."


def _ended(job: Job) -> str:
    if job.deadline_at is None or job.ended_at is None or job.state != JobState.SUCCEEDED:
        return f"It has {job.state}."
    spare_s = (job.deadline_at - job.ended_at).total_seconds()
    if spare_s >= 0:
        return f"It succeeded {rough_time(spare_s)} before its deadline."
    return f"It succeeded {rough_time(-spare_s)} after its deadline."
