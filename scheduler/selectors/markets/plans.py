"""The cost of a job with a deadline on its market, by plan.

It is computed before the submission, and kept with the job then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from knowledge.core.domain.types import Option
from knowledge.core.domain.wording import rough_time
from scheduler.core.market.plans import PORTAL, market_plans
from scheduler.core.market.pool import ON_DEMAND
from scheduler.core.market.types import PlanOutlook
from scheduler.core.types import JobInfo
from scheduler.models import Market, MarketPlan
from scheduler.selectors.markets.foreseen import drawing_weights
from scheduler.selectors.markets.recordings import on_market, past_of

NO_MARKET = "No market has nodes that suit this job."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """The outlook of one plan; money is the nodes' currency.

    plan: `on-demand`, `greedy` or `portal`. money: the median; low and high bound an 80 % interval. in_time:
    the chance to keep the deadline. lasts_s: from the submission to the end, the median. interruptions: how
    often spot nodes would go away. cheapest: of the plans to choose from that keep the
    deadline most often.
    """

    plan: str
    money: float
    money_low: float
    money_high: float
    in_time: float
    lasts_s: float
    interruptions: float
    windows: int
    cheapest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlans:
    """The plans of a job. note: why there are not three; empty if there are."""

    market: Market | None = None
    plans: tuple[JobPlan, ...] = ()
    note: str = ""

    def named(self, name: str) -> JobPlan | None:
        return next((one for one in self.plans if one.plan == name), None)

    @property
    def followed(self) -> JobPlan | None:
        """The plan of a job that may use spot nodes."""
        return self.named(PORTAL) or self.named(ON_DEMAND)

    @property
    def on_demand(self) -> JobPlan | None:
        return self.named(ON_DEMAND)


def plans_for(
    options: Sequence[Option], *, deadline_at: datetime, budget: float | None, now: datetime
) -> JobPlans:
    """The plans of a job with these options that is submitted now."""
    return plans_of(
        JobInfo(
            id="",
            submitted_at=now.timestamp(),
            options=tuple(options),
            due_at=deadline_at.timestamp(),
            spot=True,
            budget=budget,
        )
    )


def plans_of(job: JobInfo) -> JobPlans:
    """The plans of a job by what was recorded before it was submitted."""
    one = on_market(job)
    if one is None:
        return JobPlans(note=NO_MARKET)
    terms, period_s = one.contract.job, one.contract.period_s
    if terms.slots < 1:
        return JobPlans(
            market=one.market,
            note=f"The deadline is nearer than one market period of {rough_time(period_s)}: the job goes to"
            " on-demand nodes at once.",
        )
    duration = one.contract.options[terms.largest][0].duration_s
    found = market_plans(terms, duration, past_of(one), drawing_weights(one.market))
    plans = tuple(_plan(one, period_s, cheapest=one == found.cheapest) for one in found.outlooks)
    return JobPlans(market=one.market, plans=plans, note=found.without_spot)


def kept_plans(job_id: str) -> JobPlans | None:
    """The plans of the submission; None until they are kept."""
    row = MarketPlan.objects.filter(job=job_id).select_related("market").first()
    if row is None:
        return None
    plans = tuple(JobPlan(**raw) for raw in row.outlooks)
    return JobPlans(market=row.market, plans=plans, note=row.note)


def _plan(outlook: PlanOutlook, period_s: float, *, cheapest: bool) -> JobPlan:
    known: dict[str, Any] = {
        name: getattr(outlook, name)
        for name in ("money", "money_low", "money_high", "in_time", "interruptions", "windows")
    }
    return JobPlan(plan=outlook.decider, lasts_s=outlook.slots * period_s, cheapest=cheapest, **known)
