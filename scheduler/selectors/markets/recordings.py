"""Jobs with a deadline on the recorded past of their market."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.conf import settings

from knowledge.core.domain.option_json import read_option
from scheduler.core.market.quotes import by_slot
from scheduler.core.market.recording import Recording, recorded
from scheduler.core.market_contracts import Contract, contract
from scheduler.core.types import JobInfo
from scheduler.models import Job, Market
from scheduler.selectors.markets.foreseen import MOST_RECORDED, market_terms
from scheduler.selectors.markets.quotes import quotes_of, samples_of

MOST_SLOTS = 48  # a job with more time is played in longer slots
BACK = timedelta(days=30)
AN_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOnMarket:
    """A job, and the market that it would be decided on."""

    market: Market
    contract: Contract

    @property
    def began_at(self) -> datetime:
        return datetime.fromtimestamp(self.contract.info.submitted_at, UTC)


def on_market(job: JobInfo, markets: Sequence[Market] | None = None) -> JobOnMarket | None:
    """The job as it was submitted, in the market that decides for it.

    None where none suits it. markets: those to choose from; None: all.
    """
    if job.due_at is None:
        return None
    rows = {row.name: row for row in (Market.objects.all() if markets is None else markets)}
    period_s = max(settings.SPOT_PERIOD_S, (job.due_at - job.submitted_at) / MOST_SLOTS)
    terms = (replace(market_terms(row), period_s=period_s) for row in rows.values())
    found = contract(job, terms, job.submitted_at)
    return JobOnMarket(market=rows[found.market.name], contract=found) if found else None


def info_of(job: Job) -> JobInfo:
    """The job as it was submitted, for markets."""
    return JobInfo(
        id=job.pk,
        submitted_at=job.submitted_at.timestamp(),
        options=tuple(map(read_option, job.options)),
        due_at=job.deadline_at.timestamp() if job.deadline_at else None,
        spot=True,
        budget=job.budget,
    )


def past_of(one: JobOnMarket) -> Recording:
    """The recording before the job was submitted; its last slot ends then."""
    whole = _recorded(one, one.began_at)
    return whole.before(len(whole) - 1)


def met_by(one: JobOnMarket) -> tuple[Recording, int]:
    """The recording until the job's deadline, and the slot in which the job began."""
    slots = one.contract.job.slots
    whole = _recorded(one, one.began_at + timedelta(seconds=slots * one.contract.period_s))
    return whole, max(0, len(whole) - 1 - slots)


def _recorded(one: JobOnMarket, until: datetime) -> Recording:
    """The market in slots of the job; the last one begins at `until`."""
    period_s, market = one.contract.period_s, one.market
    first = samples_of(market, since=one.began_at - BACK).values_list("at", flat=True).first()
    back_s = (one.began_at - first).total_seconds() if first else 0.0
    slots = min(max(0, int(back_s // period_s)), MOST_RECORDED)
    since = one.began_at - timedelta(seconds=slots * period_s)
    series = by_slot(
        quotes_of(market, since=since, until=until),
        since=since.timestamp(), until=until.timestamp(), period_s=period_s,
        gpus_per_node=market.gpus_per_node,
    )  # fmt: skip
    return recorded(series, slot_price=period_s / AN_HOUR_S)
