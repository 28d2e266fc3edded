"""Markets through REST and pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.clock import database_now
from scheduler.models import Allocation, Market, MarketSample, NodePrice
from tests.harness import world
from tests.harness.fake_node import step
from tests.scheduler.markets import making

pytestmark = pytest.mark.django_db
MARKET = {"name": "east", "gpu_model": "cpu", "on_demand_price": 1.0}


@pytest.fixture
def made(admin_api: APIClient) -> dict[str, Any]:
    answer = admin_api.post("/api/markets/", MARKET, format="json")
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def samples(*prices: float, hours: float = 0.0) -> dict[str, object]:
    at = database_now() - timedelta(hours=hours, minutes=len(prices))
    return {
        "samples": [
            {"at": (at + timedelta(minutes=number)).isoformat(), "price": price, "available": 2}
            for number, price in enumerate(prices)
        ]
    }


def test_a_market_is_added_read_by_all_changed_and_removed(
    admin_api: APIClient, api: APIClient, made: dict[str, Any]
) -> None:
    address = f"/api/markets/{made['id']}/"
    assert made["id"].startswith("mkt-")
    assert [api.get(f"/api/markets/?gpu_model={one}").json()["total"] for one in ("cpu", "x")] == [1, 0]
    assert api.get("/api/markets/?order=name").json()["data"] == [api.get("/api/markets/east/").json()]
    assert api.patch(address, {"max_nodes": 3}, format="json").status_code == 403
    changed = admin_api.patch(address, {"max_nodes": 3, "on_demand_price": 2.0}, format="json").json()
    assert (changed["max_nodes"], changed["on_demand_price"], changed["name"]) == (3, 2.0, "east")
    assert api.get(address.replace("mkt-", "")).status_code == 404
    assert admin_api.delete(address).status_code == 204
    assert not Market.objects.exists()


def test_a_market_of_gpus_that_nobody_knows_is_refused_with_the_nearest(
    admin_api: APIClient, made: dict[str, Any]
) -> None:
    """One that was known when the market was made stays, although its last node has gone since."""
    address, unknown = f"/api/markets/{made['id']}/", {"gpu_model": "NVIDIA-A100-SXM4-8OGB"}
    for answer in (
        admin_api.post("/api/markets/", {**MARKET, **unknown, "name": "west"}, format="json"),
        admin_api.patch(address, unknown, format="json"),
    ):
        assert answer.status_code == 400
        assert "did you mean A100-SXM4-80GB or" in answer.json()["error"]["fields"]["gpu_model"]
    Market.objects.update(gpu_model="Vanished-1")
    assert admin_api.patch(address, {"max_nodes": 3}, format="json").status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"on_demand_price": 0}, "on_demand_price"),
        ({"gpus_per_node": 0}, "gpus_per_node"),
        ({"max_nodes": -1}, "max_nodes"),
        ({"provisioner": "aws"}, "provisioner"),
        ({"gpu_model": "A1OO"}, "gpu_model"),
        ({"changeover_s": -1}, "changeover_s"),
    ],
)
def test_wrong_terms_are_named(admin_api: APIClient, given: dict[str, object], field: str) -> None:
    answer = admin_api.post("/api/markets/", {**MARKET, **given}, format="json")
    assert answer.status_code == 400
    assert field in answer.content.decode()


def test_two_markets_of_one_name_are_refused(admin_api: APIClient, made: dict[str, Any]) -> None:
    answer = admin_api.post("/api/markets/", MARKET, format="json")
    assert answer.status_code == 400
    assert "choose another name" in answer.content.decode()


def test_samples_are_appended_and_foreseen_from(
    admin_api: APIClient, api: APIClient, made: dict[str, Any]
) -> None:
    address = f"/api/markets/{made['id']}/samples/"
    assert admin_api.post(address, samples(0.3, 0.4), format="json").json() == {"added": 2}
    assert [row["price"] for row in api.get(address).json()["data"]] == [0.4, 0.3]
    forecast = api.get(f"/api/markets/{made['id']}/forecast/").json()
    assert [one["price"] for one in forecast["horizons"]] == [0.4] * 5
    wrong = admin_api.post(address, samples(5000.0), format="json")
    assert wrong.status_code == 400
    assert "samples.0.price" in wrong.content.decode()
    assert MarketSample.objects.count() == 2


@pytest.mark.one_database
def test_after_a_gap_nothing_is_foreseen(admin_api: APIClient, api: APIClient, made: dict[str, Any]) -> None:
    address = f"/api/markets/{made['id']}/"
    admin_api.post(f"{address}samples/", samples(0.3, hours=5), format="json")
    assert api.get(f"{address}forecast/").json()["horizons"] == []
    assert api.get(address).json()["available"] is None


def test_a_market_in_use_stays(admin_api: APIClient, made: dict[str, Any]) -> None:
    making.market_node(Market.objects.get())
    answer = admin_api.delete(f"/api/markets/{made['id']}/")
    assert answer.status_code == 409
    assert "drain and remove them first" in answer.content.decode()


@pytest.mark.one_database
def test_an_administrator_says_what_a_node_is(
    admin_api: APIClient, api: APIClient, made: dict[str, Any]
) -> None:
    node = world.fake_node()
    address = f"/api/nodes/{node.node_id}/"
    assert api.patch(address, {"kind": "spot"}, format="json").status_code == 403
    for market in ("east", made["id"]):
        answer = admin_api.patch(address, {"kind": "spot", "market": market}, format="json").json()
        east = {"id": made["id"], "name": "east"}
        assert (answer["kind"], answer["market"], answer["price_per_gpu_hour"]) == ("spot", east, 1.0)
    assert admin_api.patch(address, {"kind": "owned", "market": "east"}, format="json").status_code == 400
    refused = admin_api.patch(address, {"market": "west"}, format="json")
    assert list(refused.json()["error"]["fields"]) == ["market"]
    answer = admin_api.patch(address, {"kind": "owned"}, format="json").json()
    assert (answer["kind"], answer["market"]) == ("owned", None)


def test_what_a_job_saved_is_the_difference_to_on_demand_prices(
    admin_api: APIClient, client: Client, made: dict[str, Any]
) -> None:
    market = Market.objects.get()
    making.sample(market, 0.25)
    spot = making.market_node(market)
    owner = world.user()
    job = world.placed_job(spot, owner=owner, spot=True)
    an_hour_ago = database_now() - timedelta(hours=1)
    NodePrice.objects.update(since=an_hour_ago)
    Allocation.objects.update(allocated_at=an_hour_ago)
    spot.run(next(iter(spot.orders.values())), step(1))
    client.force_login(owner)
    answer = client.get(f"/api/jobs/{job.pk}/market/").json()
    shown = client.get(f"/api/jobs/{job.pk}/").json()
    assert answer["spent"] == pytest.approx(shown["cost"]["amount"], abs=0.001)
    assert answer["on_demand_only"] == pytest.approx(1.0, rel=0.01)
    assert answer["saved"] == pytest.approx(answer["on_demand_only"] - answer["spent"])
    assert [span["lane"] for span in answer["spans"]][-1] == "spot"
    page = client.get(f"/jobs/{job.pk}/?tab=market").content.decode()
    assert "On demand only" in page
    assert "Runs on spot nodes" in page


@pytest.mark.one_database
def test_pages_show_markets_and_refuse_what_is_wrong_at_its_field(
    client: Client, made: dict[str, Any]
) -> None:
    making.sample(Market.objects.get(), 0.25)
    client.force_login(world.admin())
    assert "0.25" in client.get("/markets/").content.decode()
    address = f"/markets/{made['id'].removeprefix('mkt-')}/"
    assert "Forecast error by horizon" in client.get(address).content.decode()
    form = {**MARKET, "gpus_per_node": 1, "max_nodes": -1, "changeover_s": 1}
    refused = client.post(address, form)
    assert refused.status_code == 400
    assert "must be between 0 and" in refused.content.decode()
    client.post(address, {**form, "max_nodes": 2})
    assert Market.objects.get().max_nodes == 2
    client.post(f"{address}remove/")
    assert not Market.objects.exists()
