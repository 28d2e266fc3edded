"""Weights of deciders, learnt once from each job whose deadline has passed."""

from __future__ import annotations

from datetime import timedelta
from math import exp

import pytest
from django.test import Client

from portal.clock import database_now
from scheduler.core.market.pool import POOL
from scheduler.core.market.selection import RATE, SHARE, Selection, scaled
from scheduler.loop.tick import tick
from scheduler.models import DeciderTrial, DeciderWeight, Job, Market, MarketDecision
from scheduler.selectors.markets.foreseen import market_view
from scheduler.services.markets.learning import learn_weights
from scheduler.services.markets.samples import SampleValues, import_samples
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.scheduler.markets import making

pytestmark = pytest.mark.django_db
HOURS = 12


def market() -> Market:
    """Two days of a market whose spot nodes come and go every few hours."""
    made, now = making.market(changeover_s=60.0), database_now()
    samples = [
        SampleValues(
            at=now - timedelta(minutes=30 * ago + 1),
            price=0.3,
            available=2 if ago % 9 < 5 else 0,
        )
        for ago in range(96, -1, -1)
    ]
    import_samples(market=made, samples=samples, actor=None, now=now)
    return made


def decided_job(of: Market) -> Job:
    """A job whose deadline has just passed, and for which something was decided."""
    job, now = world.job(deadline_at=database_now() + timedelta(hours=HOURS)), database_now()
    times = {"submitted_at": now - timedelta(hours=HOURS), "deadline_at": now}
    for option in job.options:  # it takes seven hours
        option["duration_s"] = {"value": 25_200.0, "low": None, "high": None}
    Job.objects.filter(pk=job.pk).update(options=job.options, **times)
    MarketDecision.objects.create(
        job=job, market=of, slot=1, at=now - timedelta(hours=HOURS), spot=1, on_demand=0, decider="greedy"
    )
    return job


def test_a_job_teaches_once_and_later_jobs_draw_by_what_was_learnt(client: Client) -> None:
    east = market()
    making.market_node(east)
    first = decided_job(east)
    assert [learn_weights(now=database_now()) for _ in range(2)] == [1, 0]
    trial = DeciderTrial.objects.get(job=first)
    assert set(trial.utilities) == set(POOL)
    assert len(set(trial.utilities.values())) > 1  # the deciders were told apart
    expected = Selection.among(list(POOL)).after(scaled(trial.utilities))
    assert market_view(east, database_now()).weights == pytest.approx(expected.weights)
    second = decided_job(east)
    learn_weights(now=database_now())
    both = expected.after(scaled(DeciderTrial.objects.get(job=second).utilities))
    rows = {row.decider: row for row in DeciderWeight.objects.filter(market=east)}
    assert {name: row.weight for name, row in rows.items()} == pytest.approx(both.weights)
    assert {row.jobs for row in rows.values()} == {2}
    client.force_login(world.user())
    assert "They were learnt from 2 jobs" in client.get(f"/markets/{east.pk}/").content.decode()
    assert {one["jobs"] for one in client.get(f"/api/markets/mkt-{east.pk}/").json()["weights"]} == {2}


def test_what_the_loop_decided_is_learnt_from_after_the_deadline() -> None:
    east = market()
    making.market_node(east)
    choose_policy(name="spot", actor=world.admin(), reason="test", now=database_now())
    job = world.job(deadline_at=database_now() + timedelta(hours=HOURS))
    tick()
    assert MarketDecision.objects.filter(job=job).exists()
    assert learn_weights(now=database_now()) == 0  # a slow decider would still be at it
    assert learn_weights(now=database_now() + timedelta(hours=HOURS)) == 1


@pytest.mark.one_database
def test_a_job_without_options_teaches_nothing_and_is_not_tried_again() -> None:
    east = market()
    job = decided_job(east)
    Job.objects.filter(pk=job.pk).update(options=[])
    assert [learn_weights(now=database_now()) for _ in range(2)] == [1, 0]
    assert DeciderTrial.objects.get(job=job).utilities == {}
    assert not DeciderWeight.objects.exists()


@pytest.mark.one_database
def test_a_decider_that_is_new_begins_with_the_mean_and_one_that_is_gone_leaves() -> None:
    east = market()
    making.market_node(east)
    decided_job(east)
    learn_weights(now=database_now())
    DeciderWeight.objects.filter(decider="greedy").update(decider="of-an-earlier-release")
    kept = DeciderWeight.objects.filter(decider__in=POOL)
    gain, weight = (sum(kept.values_list(name, flat=True)) / len(kept) for name in ("gain", "weight"))
    old = kept.get(decider="uniform").weight
    job = decided_job(east)
    learn_weights(now=database_now())
    utilities = scaled(DeciderTrial.objects.get(job=job).utilities)
    new = DeciderWeight.objects.get(decider="greedy")
    assert new.gain == pytest.approx(gain + utilities["greedy"])
    alike = SHARE / len(POOL)  # that all get; beyond it weights grow by what each brought
    grown = exp(RATE * (utilities["greedy"] - utilities["uniform"]))
    other = DeciderWeight.objects.get(decider="uniform").weight
    assert (new.weight - alike) / (other - alike) == pytest.approx(weight / old * grown)
    assert sum(DeciderWeight.objects.values_list("weight", flat=True)) == pytest.approx(1.0)
    assert set(DeciderWeight.objects.values_list("decider", flat=True)) == set(POOL)
