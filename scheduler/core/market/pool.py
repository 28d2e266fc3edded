"""All deciders by name. A new one is a function and a line here."""

from __future__ import annotations

from functools import partial

from scheduler.core.market.deciders import Decider, ahanp, greedy, on_demand, pace, to_go, uniform

SIGMA = 0.9  # up to this share of the on-demand price, `pace` takes spot GPUs when it is ahead
HORIZONS = ((1, 1), (3, 1), (5, 1), (5, 6))  # slots ahead, plans that are averaged

ON_DEMAND = "on-demand"
POOL: dict[str, Decider] = {
    "greedy": greedy,
    "uniform": uniform,
    "ahanp-0.5": partial(ahanp, sigma=0.5),
    "ahanp-0.9": partial(ahanp, sigma=0.9),
    **{f"pace-{w}-{v}": partial(pace, ahead=w, averaged=v, sigma=SIGMA) for w, v in HORIZONS},
    **{f"to-go-{w}-{v}": partial(to_go, ahead=w, averaged=v) for w, v in HORIZONS},
}
DECIDERS: dict[str, Decider] = {ON_DEMAND: on_demand, **POOL}
WITHOUT_FORECASTS = "ahanp-0.9"  # answers where nothing can be foreseen
FORESEEING = frozenset(name for name in POOL if name.startswith(("pace", "to-go")))
