"""The markets that are played, and the job that runs there."""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Any

from scheduler.core.market.quotes import Series, by_slot
from scheduler.core.market.recording import Recording, recorded
from scheduler.core.market.replay import valued
from scheduler.core.market.types import DeadlineJob
from scheduler.simulator.inputs.importers.market_traces import MarketTrace, load_market, paired

PERIOD_S, RESTART_S, ON_DEMAND_PRICE = 1800.0, 120.0, 3.06
SLOTS, WINDOWS, WARM_UP = 24, 30, 48  # the first day is left to forecasts
SIZES, EFFICIENCY = (1, 2, 4, 8), 0.95


def job_of(tightness: float) -> DeadlineJob:
    rates = {size: size * EFFICIENCY ** log2(size) for size in SIZES}
    kept = 1 - RESTART_S / PERIOD_S
    return valued(
        DeadlineJob(
            work=tightness * SLOTS * rates[max(SIZES)], slots=SLOTS, rates=rates, value=0.0,
            on_demand_price=1.0, growing=kept, shrinking=kept,
        )
    )  # fmt: skip


class Markets:
    """The recorded markets, read when they are asked for."""

    def __init__(self, traces: Path) -> None:
        self.traces = traces
        self._known: dict[str, Recording] = {}

    def of(self, zone: str) -> Recording:
        """Nodes of a zone at the prices of p3.2xlarge there."""
        prices = lambda: load_market(  # noqa: E731
            self.traces / "spot_2020/aws_gpu_spot_price_2020.csv.gz", f"{zone}/p3.2xlarge"
        )
        return self._recording(zone, zone, prices, ON_DEMAND_PRICE)

    def auction(self, zone: str) -> Recording:
        """Nodes of a zone at the auctioned prices of 2016, up to ten times those on demand."""
        prices = lambda: load_market(  # noqa: E731
            self.traces / "spot_aws_price_2016/g2.8xlarge_us-east-1a.csv.gz"
        )
        return self._recording(f"{zone}, 2016", zone, prices, 2.6 / 4)

    def _recording(self, name: str, zone: str, prices: Any, on_demand: float) -> Recording:
        if name not in self._known:
            part = f"availability/16-node/aws-08-27-2023/{zone}_v100_1"
            counts: MarketTrace = load_market(self.traces / "spot_skypilot/changes.csv.gz", part)
            both = paired(counts, prices())
            series: Series = by_slot(both.quotes, since=0.0, until=both.length_s, period_s=PERIOD_S)
            self._known[name] = recorded(series, slot_price=1 / on_demand)
        return self._known[name]
