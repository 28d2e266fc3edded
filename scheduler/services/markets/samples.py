"""Samples of a market: checked as a whole, then kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from scheduler import hints
from scheduler.core.market.quotes import quote_problems
from scheduler.core.market.types import Quote
from scheduler.errors import BadParameters
from scheduler.models import Market, MarketSample, SampleSource
from scheduler.services.markets.prices import follow_market

NAMED = 20  # wrong fields in one answer
CLOCKS = timedelta(seconds=5)  # by which a provider's clock may be ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleValues:
    """Price per GPU hour and spot nodes available at a moment; None is unknown."""

    at: datetime
    price: float | None = None
    available: int | None = None


@transaction.atomic
def append_samples(
    *, market: Market, samples: Sequence[SampleValues], actor: User, now: datetime
) -> list[MarketSample]:
    """Keep samples that are later than all before from programs.

    Nothing is kept if one is wrong. Raises BadParameters naming each wrong value, NotAllowed.
    """
    require_admin(actor)
    newest = MarketSample.objects.filter(market=market, source=SampleSource.API).order_by("-at").first()
    kept = _keep(market, samples, SampleSource.API, now, after=newest.at if newest else None)
    _audit(market, kept, actor, now)
    return kept


@transaction.atomic
def import_samples(
    *, market: Market, samples: Sequence[SampleValues], actor: User | None, now: datetime
) -> list[MarketSample]:
    """Keep a history, which may be older than what is known.

    Nothing is kept if one is wrong, or there already. Raises BadParameters naming each wrong value.
    """
    kept = _keep(market, samples, SampleSource.IMPORT, now, after=None)
    _audit(market, kept, actor, now)
    return kept


@transaction.atomic
def note_sample(*, market: Market, price: float | None, available: int | None, now: datetime) -> None:
    """Keep what agents or the provisioner told just now, unless it says nothing new.

    Raises BadParameters.
    """
    known = MarketSample.objects.filter(market=market, source=SampleSource.AGENT).order_by("-at").first()
    if known is not None:
        unchanged = (known.price, known.available) == (price, available)
        if known.at >= now or (unchanged and known.at > now - timedelta(seconds=settings.SPOT_PERIOD_S)):
            return  # the clock was set back, or nothing is new
    _keep(market, [SampleValues(at=now, price=price, available=available)], SampleSource.AGENT, now)


def _keep(
    market: Market,
    samples: Sequence[SampleValues],
    source: SampleSource,
    now: datetime,
    *,
    after: datetime | None = None,
) -> list[MarketSample]:
    errors = _wrong(market, samples, now, after)
    if not errors and source is SampleSource.IMPORT:
        errors = _doubled(market, samples, source)
    if errors:
        raise BadParameters(dict(list(errors.items())[:NAMED]))
    kept = MarketSample.objects.bulk_create(
        (
            MarketSample(market=market, at=one.at, price=one.price, available=one.available, source=source)
            for one in samples
        ),
        batch_size=1000,
    )
    follow_market(market=market, now=now)
    hints.tick()
    return kept


def _wrong(
    market: Market, samples: Sequence[SampleValues], now: datetime, after: datetime | None
) -> dict[str, str]:
    if not samples:
        return {"samples": "give at least one sample"}
    errors, before = {}, after.timestamp() if after else None
    latest = (now + CLOCKS).timestamp()
    for number, one in enumerate(samples):
        quote = Quote(one.at.timestamp(), one.price, one.available)
        for problem in quote_problems(quote, market.on_demand_price, latest, before):
            errors[f"samples.{number}.{problem.field}".rstrip(".")] = problem.text
        before = max(before or quote.at, quote.at)
    return errors


def _doubled(market: Market, samples: Sequence[SampleValues], source: SampleSource) -> dict[str, str]:
    known = set(
        MarketSample.objects.filter(
            market=market, source=source, at__gte=samples[0].at, at__lte=samples[-1].at
        ).values_list("at", flat=True)
    )
    return {
        f"samples.{number}.at": "has been imported already; leave it out"
        for number, one in enumerate(samples)
        if one.at in known
    }


def _audit(market: Market, kept: Sequence[MarketSample], actor: User | None, now: datetime) -> None:
    data = {"samples": len(kept), "source": kept[0].source}
    audit(action="market samples added", actor=actor, target=f"market {market.pk}", data=data, now=now)
