"""Keep a recorded history of a market."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from portal.clock import database_now
from scheduler.errors import BadParameters
from scheduler.selectors.markets.quotes import market_named
from scheduler.services.markets.samples import SampleValues, import_samples
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.importers.market_traces import MarketTrace, load_market


class Command(BaseCommand):
    help = "Keep the prices and availability of a recorded market, all or none."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a recorded market, as `simulate --market` takes it")
        parser.add_argument("--market", required=True, help="the name of the market at the portal")
        parser.add_argument("--part", help="one of the series of a file that holds several")
        parser.add_argument(
            "--since", help="when the record begins, with its offset from UTC (so that it ends now)"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        market, now = market_named(options["market"]), database_now()
        if market is None:
            raise CommandError(f"--market: there is no market {options['market']}; add it first")
        try:
            trace = load_market(options["file"], options["part"])
            since = _since(options["since"], trace, now)
            samples = [
                SampleValues(at=since + timedelta(seconds=at), price=price, available=available)
                for at, price, available in trace.quotes
            ]
            kept = import_samples(market=market, samples=samples, actor=None, now=now)
        except (SimulatorError, BadParameters) as wrong:
            raise CommandError(str(wrong)) from wrong
        self.stdout.write(f"{len(kept)} samples were kept for {market.name}.")


def _since(text: str | None, trace: MarketTrace, now: datetime) -> datetime:
    if text is None:
        return now - timedelta(seconds=trace.length_s)
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise CommandError("--since must be a moment with its offset, as in 2026-03-01T12:00:00+00:00")
    return found
