"""The markets that are played, and the job that runs there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log2
from pathlib import Path

from scheduler.core.market.quotes import Series, by_slot
from scheduler.core.market.recording import Recording, recorded
from scheduler.core.market.replay import valued
from scheduler.core.market.types import DeadlineJob
from scheduler.simulator.inputs.importers.market_traces import MarketTrace, load_market, paired

PERIOD_S, RESTART_S, ON_DEMAND_PRICE = 1800.0, 120.0, 3.06
SLOTS, WINDOWS, WARM_UP = 24, 30, 48  # the first day is left to forecasts
SIZES, EFFICIENCY = (1, 2, 4, 8), 0.95
TIGHTNESS = (0.4, 0.6, 0.8)
ZONES = ("us-east-2b", "us-west-2a")
# Further series of SkyPilot: one node, there or not, for 27 to 46 days.
FURTHER = {
    "us-east-1c, 2023": "aws-02-15-2023/us-east-1c_v100_1",
    "us-east-1d, 2023": "aws-02-15-2023/us-east-1d_v100_1",
    "us-east-2a, 2023": "aws-02-15-2023/us-east-2a_v100_1",
    "us-east-2b, 2023": "aws-02-15-2023/us-east-2b_v100_1",
    "us-west-2a, 2023": "aws-02-15-2023/us-west-2a_v100_1",
    "us-west-2b, 2023": "aws-02-15-2023/us-west-2b_v100_1",
    "us-west-2a, 2022": "aws-10-26-2022/us-west-2a_v100_8",
    "us-west-2b, 2022": "aws-10-26-2022/us-west-2b_v100_8",
}


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
        return self._recording(zone, _sixteen(zone), partial(self._prices_of, zone), ON_DEMAND_PRICE)

    def auction(self, zone: str) -> Recording:
        """Nodes of a zone at the auctioned prices of 2016, up to ten times those on demand."""
        prices = partial(load_market, self.traces / "spot_aws_price_2016/g2.8xlarge_us-east-1a.csv.gz")
        return self._recording(f"{zone}, 2016", _sixteen(zone), prices, 2.6 / 4)

    def node_of_eight(self, name: str) -> Recording:
        """One of the further series, as a node of eight GPUs at the prices of its zone."""
        prices = partial(self._prices_of, name.split(",")[0])
        return self._recording(name, f"1-node/{FURTHER[name]}", prices, ON_DEMAND_PRICE, gpus_per_node=8)

    def _prices_of(self, zone: str) -> MarketTrace:
        return load_market(self.traces / "spot_2020/aws_gpu_spot_price_2020.csv.gz", f"{zone}/p3.2xlarge")

    def _recording(
        self,
        name: str,
        counts: str,
        prices: Callable[[], MarketTrace],
        on_demand: float,
        gpus_per_node: int = 1,
    ) -> Recording:
        if name not in self._known:
            nodes = load_market(self.traces / "spot_skypilot/changes.csv.gz", f"availability/{counts}")
            both = paired(nodes, prices())
            series: Series = by_slot(
                both.quotes, since=0.0, until=both.length_s, period_s=PERIOD_S, gpus_per_node=gpus_per_node
            )
            self._known[name] = recorded(series, slot_price=1 / on_demand)
        return self._known[name]


def _sixteen(zone: str) -> str:
    return f"16-node/aws-08-27-2023/{zone}_v100_1"
