"""Decisions about jobs on markets, kept from a policy's memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduler.core.types import ClusterState
from scheduler.models import Market, MarketDecision


@transaction.atomic
def keep_market_decisions(*, state: ClusterState, memory: Mapping[str, Any], now: datetime) -> None:
    """Keep what a policy decided for jobs in their present slots, where that is news.

    memory: as the policy `spot` has it.
    """
    found, before = _on_markets(memory), _on_markets(state.memory)
    spent = {job.id: job.spent for job in state.jobs}
    fresh = {job: one for job, one in found.items() if _choice(one) != _choice(before.get(job, {}))}
    if not fresh:
        return
    markets = dict(Market.objects.values_list("name", "pk"))
    MarketDecision.objects.bulk_create(
        MarketDecision(
            job_id=job, market_id=markets[one["market"]], slot=one["slot"], at=now, spot=one["spot"],
            on_demand=one["on_demand"], decider=one["by"], inputs=one["inputs"], spent=spent.get(job, 0.0),
        )
        for job, one in fresh.items()
        if one["market"] in markets
    )  # fmt: skip


def _on_markets(memory: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The jobs of a memory that have a market; other policies keep none."""
    jobs = memory.get("jobs", {})
    if not isinstance(jobs, Mapping):
        return {}
    return {job: one for job, one in jobs.items() if isinstance(one, Mapping) and "market" in one}


def _choice(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(one.get(name) for name in ("slot", "spot", "on_demand", "by"))
