"""Replay a recorded market on this machine, with real agents and trainings."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.clock import database_now
from portal.management.replayed_market import Player, Replay
from scheduler.core.market.types import Quote
from scheduler.errors import BadParameters
from scheduler.models import Market
from scheduler.selectors.markets.quotes import market_named
from scheduler.services.markets.markets import MarketTerms, add_market
from scheduler.services.markets.samples import note_sample
from scheduler.services.nodes.register import create_join_token
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.importers.market_traces import at_price, load_market
from trainer.written import decimal, whole

TOKEN_LIFETIME_S, TOKEN_USES = 7 * 86_400, 1000


class Command(BaseCommand):
    help = "Start and end CPU agents on this machine as a recorded spot market says; Ctrl-C ends it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("trace", type=Path, help="a recorded market, as `simulate --market` takes it")
        parser.add_argument("--part", help="one of the series of a file that holds several")
        parser.add_argument("--market", default="replayed", help="its name at the portal (replayed)")
        parser.add_argument("--speed", type=decimal, default=60.0, help="seconds of the trace in one (60)")
        parser.add_argument("--nodes", type=whole, default=2, help="the most nodes (2)")
        parser.add_argument("--slots", type=whole, default=1, help="CPU slots of each (1)")
        parser.add_argument("--notice", type=decimal, default=10.0, help="seconds of a notice (10)")
        parser.add_argument("--price", type=decimal, help="of a GPU hour, where the trace has none")
        parser.add_argument(
            "--on-demand", type=decimal, default=1.0, help="price of a GPU hour on demand (1)"
        )
        parser.add_argument("--portal", default="http://127.0.0.1:8000", help="where agents find the portal")
        parser.add_argument("--dir", type=Path, help="folder of the agents (DATA_DIR/market)")

    def handle(self, *_: Any, **options: Any) -> None:
        replay = _replay(options)
        market = _market(options)
        folder: Path = options["dir"] or settings.DATA_DIR / "market"
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        join_file = folder / "join_token"
        join_file.touch(mode=0o600)
        join_file.write_text(_join_token())
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())

        def tell(quote: Quote) -> None:
            note_sample(market=market, price=quote.price, available=quote.available, now=database_now())
            price = "unknown" if quote.price is None else f"{quote.price:g}"
            self.stdout.write(f"{quote.at:.0f} s of the trace: {quote.available} nodes, price {price}")

        Player(
            replay=replay, portal=options["portal"], folder=folder, join_file=join_file, on_quote=tell
        ).play(stopped.is_set)


def _replay(options: dict[str, Any]) -> Replay:
    for name in ("speed", "nodes", "slots"):
        if options[name] <= 0:
            raise CommandError(f"--{name} must be more than 0")
    if options["notice"] < 0:
        raise CommandError("--notice must be 0 or more")
    try:
        trace = load_market(options["trace"], options["part"])
    except SimulatorError as wrong:
        raise CommandError(str(wrong)) from wrong
    if options["price"] is not None and all(quote.price is None for quote in trace.quotes):
        trace = at_price(trace, options["price"])
    return Replay(
        market=options["market"], quotes=trace.quotes, speed=options["speed"], nodes=options["nodes"],
        slots=options["slots"], notice_s=options["notice"],
    )  # fmt: skip


def _market(options: dict[str, Any]) -> Market:
    """The market of that name, made for the replay if there is none."""
    found = market_named(options["market"])
    if found is not None:
        if not found.replays:
            raise CommandError(f"--market: {found.name} is a real market; choose another name")
        return found
    terms = MarketTerms(
        name=options["market"], gpu_model="cpu", on_demand_price=options["on_demand"],
        gpus_per_node=options["slots"], max_nodes=options["nodes"], replays=options["trace"].name,
    )  # fmt: skip
    try:
        return add_market(terms=terms, actor=_administrator(), now=database_now())
    except BadParameters as wrong:
        raise CommandError(str(wrong)) from wrong


def _join_token() -> str:
    return create_join_token(
        actor=_administrator(), now=database_now(), lifetime_s=TOKEN_LIFETIME_S, uses=TOKEN_USES
    )


def _administrator() -> Any:
    found = get_user_model().objects.filter(is_staff=True, is_active=True).order_by("pk").first()
    if found is None:
        raise CommandError("No such administrator: create one with `manage.py createsuperuser`")
    return found
