"""Samples of a market: taken as a whole or refused, and what follows for its nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.clock import database_now
from scheduler.errors import BadParameters
from scheduler.models import MarketSample, NodePrice, SampleSource
from scheduler.selectors.markets.foreseen import MOST_RECORDED, series_of
from scheduler.selectors.markets.quotes import seen_now
from scheduler.services.markets.samples import SampleValues, append_samples, import_samples, note_sample
from tests.harness import world
from tests.scheduler.markets import making

pytestmark = pytest.mark.django_db
NAN, INFINITE = float("nan"), float("inf")


def ago(minutes: float, price: float | None = 0.3, available: int | None = 2) -> SampleValues:
    at = database_now() - timedelta(minutes=minutes)
    return SampleValues(at=at, price=price, available=available)


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ([(1, -0.1, 2)], "samples.0.price", "price is -0.1; give a price per GPU-hour of 0 or more"),
        ([(1, NAN, 2)], "samples.0.price", "price is nan"),
        ([(1, INFINITE, 2)], "samples.0.price", "price is inf"),
        ([(1, 1000.0, 2)], "samples.0.price", "1000 for an on-demand price of 1 per GPU-hour"),
        ([(1, 0.3, 2), (2, 0.3, 2)], "samples.1.at", "sort the samples by time"),
        ([(-10, 0.3, 2)], "samples.0.at", "s in the future"),
        ([(1, 0.3, -1)], "samples.0.available", "from 0 to 100,000"),
        ([(1, 0.3, 100_001)], "samples.0.available", "from 0 to 100,000"),
        ([(1, None, None)], "samples.0", "both missing; give one of them"),
        ([], "samples", "at least one"),
    ],
)
@pytest.mark.one_database
def test_a_wrong_sample_is_named_and_nothing_is_kept(
    given: list[tuple[float, float | None, int | None]], field: str, message: str
) -> None:
    market, samples = making.market(), [ago(*one) for one in given]
    for take in (append_samples, import_samples):
        with pytest.raises(BadParameters) as refused:
            take(market=market, samples=samples, actor=world.admin(), now=database_now())
        assert message in refused.value.fields[field]
    assert not MarketSample.objects.exists()


@pytest.mark.one_database
def test_every_wrong_value_of_a_request_is_named_at_once() -> None:
    with pytest.raises(BadParameters) as refused:
        append_samples(
            market=making.market(), samples=[ago(1, -1.0, -1), ago(2, 999.9, 2)], actor=world.admin(),
            now=database_now(),
        )  # fmt: skip
    assert sorted(refused.value.fields) == ["samples.0.available", "samples.0.price", "samples.1.at"]


def test_a_doubled_sample_is_refused() -> None:
    market, one = making.market(), ago(5)
    with pytest.raises(BadParameters, match="one sample for a moment"):
        append_samples(market=market, samples=[one, one], actor=world.admin(), now=database_now())
    append_samples(market=market, samples=[one], actor=world.admin(), now=database_now())
    with pytest.raises(BadParameters, match="one sample for a moment"):
        append_samples(market=market, samples=[one], actor=world.admin(), now=database_now())
    import_samples(market=market, samples=[one], actor=None, now=database_now())  # another source
    with pytest.raises(BadParameters, match="imported already"):
        import_samples(market=market, samples=[one], actor=None, now=database_now())
    assert MarketSample.objects.count() == 2


def test_a_history_may_be_older_than_what_is_known_but_a_program_only_appends() -> None:
    market = making.market()
    making.sample(market)
    import_samples(market=market, samples=[ago(90), ago(60)], actor=None, now=database_now())
    with pytest.raises(BadParameters, match="sort the samples"):
        append_samples(market=market, samples=[ago(30)], actor=world.admin(), now=database_now())


def test_an_availability_that_is_too_old_is_unknown_and_a_price_stays() -> None:
    market = making.market()
    making.sample(market, 0.4, 3, at=database_now() - timedelta(hours=2))
    assert seen_now(market, database_now()) == (0.4, None)
    making.sample(market, None, 1)
    assert seen_now(market, database_now()) == (0.4, 1)


def test_what_says_nothing_new_is_not_kept_again() -> None:
    market, now = making.market(), database_now()
    for seconds in range(3):
        note_sample(market=market, price=0.3, available=2, now=now + timedelta(seconds=seconds))
    note_sample(market=market, price=0.3, available=1, now=now + timedelta(seconds=5))
    kept = MarketSample.objects.filter(source=SampleSource.AGENT).values_list("available", flat=True)
    assert list(kept) == [2, 1]


def test_spot_nodes_cost_what_their_market_asks_from_then_on() -> None:
    market = making.market()
    spot, rented = making.market_node(market), making.market_node(market, "on_demand")
    assert [making.row(node).price_per_gpu_hour for node in (spot, rented)] == [1.0, 1.0]
    making.sample(market, 0.25)
    making.sample(market, 0.35, at=database_now())
    prices = NodePrice.objects.filter(node=spot.node_id).values_list("price_per_gpu_hour", flat=True)
    assert list(prices) == [1.0, 0.25, 0.35]
    assert making.row(rented).price_per_gpu_hour == 1.0


def test_of_short_slots_no_more_are_read_than_of_long_ones(settings: Any) -> None:
    made, now = making.market(), database_now()
    assert len(series_of(made, now)) == 7 * 48 + 1
    settings.SPOT_PERIOD_S = 2.0
    assert len(series_of(made, now)) == MOST_RECORDED + 1
