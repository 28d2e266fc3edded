"""Three plans for a job with a deadline.

They are on demand, on spot as far as safe, and what the portal would do. Each is played over recorded windows
of the job's market. How long the job runs is not known either: every window has another duration, spread over
its predicted interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log
from statistics import NormalDist

from knowledge.core.domain.types import Interval
from knowledge.core.recommend.duration import NORMAL_80
from scheduler.core.market.deciders import Decider
from scheduler.core.market.outlook import outlook_of, window_starts
from scheduler.core.market.pool import DECIDERS, ON_DEMAND, POOL
from scheduler.core.market.recording import Recording
from scheduler.core.market.selection import drawn
from scheduler.core.market.types import NOTHING, DeadlineJob, PlanOutlook

WINDOWS = 30
SAFE = "greedy"  # as much on spot nodes as its guard allows: a yardstick, which no job can choose
PORTAL = "portal"
NAMES = (ON_DEMAND, SAFE, PORTAL)
_EVEN = (5**0.5 - 1) / 2  # multiples of the golden ratio spread evenly, however many there are
_FOR_EVER = 1e6  # times its slots: a live job is never given up


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketPlans:
    """The cost and the end of a job by plan; the names are `NAMES`.

    without_spot: why there is nothing but the plan on demand; empty if there are three.
    """

    outlooks: tuple[PlanOutlook, ...]
    without_spot: str = ""

    @property
    def cheapest(self) -> PlanOutlook:
        """The cheapest of those to choose from that keep the deadline most often."""
        choices = [one for one in self.outlooks if one.decider != SAFE]
        return min(choices, key=lambda one: (-one.in_time, one.money))


def market_plans(
    job: DeadlineJob, duration: Interval, recording: Recording, weights: Mapping[str, float]
) -> MarketPlans:
    """The plans of a job in a market.

    duration: predicted for the job; its interval says how far the durations of windows are apart. weights: by
    which the job draws its decider; empty: all alike.
    """
    paces = slowness(duration, WINDOWS)
    if not any(offer.available for offer in recording.offers):
        return MarketPlans(
            outlooks=(_on_demand(job, paces),), without_spot="No spot node has been seen in this market yet."
        )
    try:
        starts = window_starts(len(recording), job.slots, WINDOWS)
    except ValueError as short:
        return MarketPlans(
            outlooks=(_on_demand(job, paces),), without_spot=f"No plan on spot nodes: {short}."
        )
    own = weights or dict.fromkeys(POOL, 1.0)
    mixed = [DECIDERS[drawn(own, str(number))] for number in range(len(starts))]
    return MarketPlans(
        outlooks=(
            _on_demand(job, paces),
            _played(SAFE, job, [POOL[SAFE]] * len(starts), starts, recording, paces),
            _played(PORTAL, job, mixed, starts, recording, paces),
        )
    )


def slowness(duration: Interval, windows: int) -> list[float]:
    """How many times longer than predicted the job runs, window by window.

    The quantiles of a log-normal distribution whose 80 % interval is the predicted one; 1 where none is.
    """
    value, low, high = duration.value, duration.low, duration.high
    if value <= 0 or not low or not high:
        return [1.0] * windows
    slower, faster = log(max(high / value, 1.0)) / NORMAL_80, log(max(value / low, 1.0)) / NORMAL_80
    ranks = [NormalDist().inv_cdf((number * _EVEN + 0.5) % 1.0 or 0.5) for number in range(windows)]
    return [exp(rank * (slower if rank > 0 else faster)) for rank in ranks]


def _on_demand(job: DeadlineJob, paces: Sequence[float]) -> PlanOutlook:
    """Prices on demand are known, so that only the job's duration varies."""
    no_spot = Recording((NOTHING,) * job.slots, ((),) * job.slots, (NOTHING,) * job.slots)
    starts = [0] * len(paces)
    return _played(ON_DEMAND, job, [DECIDERS[ON_DEMAND]] * len(paces), starts, no_spot, paces)


def _played(
    name: str,
    job: DeadlineJob,
    deciders: Sequence[Decider],
    starts: Sequence[int],
    recording: Recording,
    paces: Sequence[float],
) -> PlanOutlook:
    goes_on = replace(job, value=inf, grace=_FOR_EVER)
    lives = [
        recording.live(_slower(goes_on, pace), decider, start)
        for decider, start, pace in zip(deciders, starts, paces, strict=False)
    ]
    return outlook_of(name, starts, lives, job.slots)


def _slower(job: DeadlineJob, times: float) -> DeadlineJob:
    return replace(job, rates={size: rate / times for size, rate in job.rates.items()})
