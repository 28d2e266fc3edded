"""Wants of policies, and commands that rent nodes: helpful, hanging, lying or broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.clock import database_now
from scheduler.core.market.types import Acquire, NodeTerms, Release
from scheduler.loop.tick import tick
from scheduler.models import Market, MarketForecast, MarketOrder, Node
from scheduler.selectors.markets.quotes import seen_now
from scheduler.services.markets import provisioner, provisioning
from scheduler.services.markets.forecasts import keep_forecasts
from scheduler.services.markets.orders import take_orders
from scheduler.services.markets.provisioner import ProvisionerFailed, ask
from tests.harness import world
from tests.scheduler.markets import making

pytestmark = pytest.mark.django_db
Script = Callable[[str], list[str]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """A provisioner in Python: `asked` is the question, and what it says is written down."""

    def write(body: str) -> list[str]:
        file, said = tmp_path / "rents.py", tmp_path / "asked.jsonl"
        lines = ["import json, sys, time", "asked = json.load(sys.stdin)"]
        lines += [f"open({str(said)!r}, 'a').write(json.dumps(asked) + chr(10))", body]
        file.write_text("\n".join(lines))
        return [sys.executable, str(file)]

    return write


def asked(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]


@pytest.fixture
def market(settings: Any, script: Script) -> Market:
    world.admin()
    settings.PROVISIONERS = {
        "cloud": script('print(json.dumps({"available": 3, "price": 0.2, "accepted": 2}))')
    }
    return making.market(provisioner="cloud")


def look() -> None:
    provisioning.look_after_markets(now=database_now)


def want(nodes: int, kind: NodeTerms = NodeTerms.SPOT) -> None:
    take_orders(actions=[Acquire("east", nodes, kind)], now=database_now())


def test_an_offer_is_asked_for_and_nodes_where_a_policy_wants_them(market: Market, tmp_path: Path) -> None:
    look()
    assert seen_now(market, database_now()) == (0.2, 3)
    want(2)
    look()
    *_, question = asked(tmp_path)
    assert {name: question[name] for name in ("do", "kind", "market", "nodes")} == {
        "do": "want", "kind": "spot", "market": "east", "nodes": 2,
    }  # fmt: skip
    assert question["join_token"].startswith("fjoin-")
    assert MarketOrder.objects.get(kind="spot").accepted == 2


def test_what_is_not_wanted_any_more_is_not_asked_for(market: Market, tmp_path: Path) -> None:
    want(2)
    take_orders(actions=[], now=database_now())
    look()
    assert [one["do"] for one in asked(tmp_path)] == ["offer"]


def test_a_node_that_no_job_needs_is_given_back_and_forgotten(market: Market, tmp_path: Path) -> None:
    node = making.row(making.market_node(market))
    take_orders(actions=[Release(node.pk)], now=database_now())
    node.refresh_from_db()
    assert node.state == "draining"
    tick()
    look()
    assert asked(tmp_path)[-1] == {"do": "release", "nodes": [node.name], "market": "east"}
    assert not Node.present.filter(pk=node.pk).exists()


@pytest.mark.one_database
def test_one_that_lies_is_left_alone_for_ten_minutes(market: Market, settings: Any) -> None:
    want(2)
    look()
    MarketOrder.objects.update(
        short_since=database_now() - timedelta(seconds=settings.STARTING_TIMEOUT_S + 1)
    )
    look()
    market.refresh_from_db()
    assert "accepted 2 nodes, and 0 have come" in market.problem
    assert market.quiet_until is not None
    assert market.quiet_until > database_now() + timedelta(minutes=9)


def test_what_is_not_needed_is_given_back_even_where_new_nodes_fail(
    market: Market, settings: Any, script: Script, tmp_path: Path
) -> None:
    settings.PROVISIONERS = {
        "cloud": script('asked["do"] == "want" and sys.exit(1); print(\'{"available": 3}\')')
    }
    node = making.row(making.market_node(market))
    take_orders(actions=[Release(node.pk), Acquire("east", 2, NodeTerms.SPOT)], now=database_now())
    tick()
    look()
    assert [one["do"] for one in asked(tmp_path)] == ["offer", "release", "want"]
    assert not Node.present.filter(pk=node.pk).exists()
    market.refresh_from_db()
    assert "ended with 1" in market.problem


@pytest.mark.one_database
def test_one_that_left_the_settings_is_a_problem_that_is_told(market: Market, settings: Any) -> None:
    settings.PROVISIONERS = {}
    look()
    market.refresh_from_db()
    assert "does not name it any more" in market.problem
    assert market.quiet_until is not None


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("time.sleep(60)", "no answer within"),
        ("import subprocess; subprocess.Popen(['sleep', '60']); time.sleep(60)", "no answer within"),
        ("print('hello')", "no JSON"),
        ("print('[1]')", "no JSON object"),
        ("print('{\"available\": -1}')", "available must be"),
        ("print('{\"price\": NaN}')", "no JSON"),
        ('print(\'{"accepted": "two"}\')', "accepted must be"),
        ("sys.exit(3)", "ended with 3"),
    ],
)
def test_a_useless_answer_is_named(script: Script, body: str, message: str) -> None:
    with pytest.raises(ProvisionerFailed, match=message):
        ask(script(body), {"do": "offer"}, within_s=1.5 if "sleep" in body else provisioner.ANSWER_WITHIN_S)


@pytest.mark.one_database
def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(ProvisionerFailed, match="cannot be started"):
        ask(["/nowhere/rents"], {"do": "offer"})


def test_spot_nodes_that_simply_joined_are_counted() -> None:
    market = making.market()
    for _ in range(2):
        making.market_node(market)
    look()
    assert seen_now(market, database_now()).available == 2


def test_forecasts_are_kept_with_what_became_of_them() -> None:
    market = making.market()
    making.sample(market, 0.3, 2)
    keep_forecasts(now=database_now())
    made = MarketForecast.objects.filter(market=market)
    assert [(one.horizon, one.price, one.available) for one in made] == [(n, 0.3, 2) for n in range(1, 6)]
    keep_forecasts(now=database_now())  # once in a period
    assert made.count() == 5
    making.sample(market, 0.5, 1, at=database_now())
    made.filter(horizon=1).update(at=database_now())
    keep_forecasts(now=database_now())
    first = made.get(horizon=1)
    assert (first.judged, first.actual_price, first.actual_available) == (True, 0.5, 1)
