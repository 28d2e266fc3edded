"""The market of a simulation, and how the command line names it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from scheduler.core.market.pool import DECIDERS
from scheduler.core.market.quotes import BadQuote, checked
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.cluster import NodeGroup, parse_cluster
from scheduler.simulator.inputs.importers.market_traces import MarketTrace, at_price, load_market

PERIOD_S = 1800.0
_WITH_IT = ("market_part", "on_demand", "spot_price", "decider")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMarket:
    """A recorded market, and the on-demand nodes that there always are.

    decider: the one for all jobs; empty: each draws one of the pool.
    """

    trace: MarketTrace
    on_demand: NodeGroup
    decider: str = ""
    period_s: float = PERIOD_S


def read_market(options: dict[str, Any]) -> SimulatedMarket | None:
    """The market that the options name, if any. Raises SimulatorError."""
    if options.get("market") is None:
        for name in _WITH_IT:
            if options.get(name):
                raise SimulatorError(f"--{name.replace('_', '-')}: goes with --market; name its file")
        return None
    decider = options["decider"]
    if decider and decider not in DECIDERS:
        raise SimulatorError(f"--decider: {decider!r} is none; there are {', '.join(DECIDERS)}")
    pool = _pool(options["on_demand"])
    trace = _priced(load_market(options["market"], options["market_part"]), options["spot_price"])
    try:
        checked(trace.quotes, pool.price_per_gpu_h, inf)
    except BadQuote as wrong:
        raise SimulatorError(f"--market: {options['market']}, {wrong}") from wrong
    return SimulatedMarket(trace=trace, on_demand=pool, decider=decider)


def _pool(text: str | None) -> NodeGroup:
    pools = parse_cluster(text).pools if text else ()
    if len(pools) != 1 or pools[0].price_per_gpu_h <= 0:
        raise SimulatorError(
            "--on-demand: is needed with --market: its nodes and the price of a GPU for an hour,"
            " for example v100:16x1@3.06"
        )
    return pools[0]


def _priced(trace: MarketTrace, price: float | None) -> MarketTrace:
    if all(quote.available is None for quote in trace.quotes):
        raise SimulatorError("--market: has prices but no numbers of nodes; name a file that has")
    if any(quote.price is not None for quote in trace.quotes):
        return trace
    if price is None:
        raise SimulatorError("--spot-price: is needed, as the market has no prices; give one per GPU-hour")
    return at_price(trace, price)
