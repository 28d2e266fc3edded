"""Weights of deciders, learnt from jobs whose deadline has passed.

Only then is all of the market known that any decider would have met, a slow one included.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from statistics import fmean

from django.db import transaction

from scheduler.core.market.pool import POOL
from scheduler.core.market.replay import valued
from scheduler.core.market.selection import Selection, scaled
from scheduler.models import DeciderTrial, DeciderWeight, Job, Market
from scheduler.selectors.markets.recordings import info_of, met_by, on_market

SLICE = 5  # jobs a call: each is lived through once under every decider


def learn_weights(*, now: datetime) -> int:
    """Judge the deciders on jobs that are new to them; returns how many jobs."""
    due = Job.objects.filter(market_decisions__isnull=False, deadline_at__lte=now, decider_trial=None)
    jobs = list(due.distinct().order_by("deadline_at", "pk")[:SLICE])
    for job in jobs:
        market = Market.objects.filter(decisions__job=job).order_by("-decisions__at").first()
        if market is not None:
            _learn(job, market, _utilities(job, market), now)
    return len(jobs)


def _utilities(job: Job, market: Market) -> dict[str, float]:
    """The utility that each decider would have brought, by the recorded offers.

    They include nodes that the job held itself, so that none is missing since it was taken.
    """
    one = on_market(info_of(job), [market])
    if one is None or one.contract.job.slots < 1:
        return {}
    recording, start = met_by(one)
    terms = valued(one.contract.job, job.budget)
    return {name: recording.live(terms, decider, start).utility for name, decider in POOL.items()}


@transaction.atomic
def _learn(job: Job, market: Market, utilities: Mapping[str, float], now: datetime) -> None:
    Market.objects.select_for_update(of=("self",)).get(pk=market.pk)
    _, new = DeciderTrial.objects.get_or_create(
        job=job, defaults={"market": market, "at": now, "utilities": utilities}
    )
    if not new or not utilities:
        return
    learnt = _selection(market).after(scaled(utilities))
    DeciderWeight.objects.filter(market=market).exclude(decider__in=POOL).delete()
    DeciderWeight.objects.bulk_create(
        (
            DeciderWeight(
                market=market, decider=name, weight=learnt.weights[name], gain=gain, jobs=learnt.jobs
            )
            for name, gain in learnt.sums.items()
        ),
        update_conflicts=True,
        unique_fields=["market", "decider"],
        update_fields=["weight", "gain", "jobs"],
    )


def _selection(market: Market) -> Selection:
    """The weights learnt so far; a new decider begins with the mean of the others."""
    rows = {row.decider: row for row in DeciderWeight.objects.filter(market=market, decider__in=POOL)}
    if not rows:
        return Selection.among(list(POOL))
    gain, weight = fmean(row.gain for row in rows.values()), fmean(row.weight for row in rows.values())
    weights = {name: rows[name].weight if name in rows else weight for name in POOL}
    return Selection(
        weights={name: one / sum(weights.values()) for name, one in weights.items()},
        sums={name: rows[name].gain if name in rows else gain for name in POOL},
        jobs=max(row.jobs for row in rows.values()),
    )
