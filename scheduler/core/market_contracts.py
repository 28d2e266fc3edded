"""Jobs with a deadline in a market, as its deciders see them.

Work counts as shares of the job, sizes are the GPU counts of its options on the market's GPU model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor

from knowledge.core.domain.types import Option
from scheduler.core.market.types import DeadlineJob, MarketView, Progress, SlotOffer
from scheduler.core.types import JobInfo

RESTARTS = 10  # a slot lasts so many restarts at least, or it is all overhead
LEAST_KEPT = 0.05  # share of a slot that is left after a restart
AN_HOUR_S = 3600.0
LATEST_SWITCH = "latest_switch"  # the input of a decision: when the job goes on demand at the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A job in a market: what is to be done, in which slot, and by which options.

    slot beyond the job's slots: its deadline has passed, or it is too near for a single slot.
    """

    info: JobInfo
    market: MarketView
    job: DeadlineJob
    options: Mapping[int, Sequence[Option]]
    slot: int
    period_s: float

    @property
    def is_late(self) -> bool:
        return self.slot > self.job.slots

    @property
    def done(self) -> float:
        return 1.0 - self.info.work_left

    def progress(self, *, on_spot: bool) -> Progress:
        held = self.info.holds.option.gpus if self.info.holds else 0
        size = held if held in self.job.rates else 0
        return Progress(self.slot, self.done, size, on_spot and size > 0)

    def offer(self, taken: float) -> SlotOffer:
        """The market's offer in prices of a slot, without the GPUs that others take."""
        return self._of_a_slot(self.market.offer, taken)

    def foreseen(self) -> tuple[SlotOffer, ...]:
        """Forecasts for the slots to follow.

        The job's slots may be longer than the market's periods.
        """
        known = self.market.forecast
        steps = (round(ahead * self.period_s / self.market.period_s) for ahead in range(1, len(known) + 1))
        return tuple(self._of_a_slot(known[min(step, len(known)) - 1]) for step in steps)

    def usual(self) -> SlotOffer:
        return self._of_a_slot(self.market.usual)

    def latest_switch(self) -> float:
        """When it must be on demand at its largest size, or it ends after its deadline."""
        needed = self.info.work_left / self.job.rate(self.job.largest) + 1.0 - self.job.growing
        return (self.info.due_at or 0.0) - needed * self.period_s

    def _of_a_slot(self, offer: SlotOffer, taken: float = 0.0) -> SlotOffer:
        price = None if offer.price is None else offer.price * self.period_s / AN_HOUR_S
        return SlotOffer(price, max(0.0, offer.available - taken))


def contract(job: JobInfo, markets: Iterable[MarketView], now: float) -> Contract | None:
    """The job in the market that it decides for.

    None if it has no deadline, or no market suits it. Of several markets it is the one whose on-demand nodes
    cost least.
    """
    if not job.spot or job.due_at is None:
        return None
    for market in sorted(markets, key=lambda one: (one.on_demand_price, one.name)):
        if options := _by_size(job, market):
            return _in_market(job, job.due_at, market, options, now)
    return None


def _in_market(
    job: JobInfo, due_at: float, market: MarketView, options: Mapping[int, Sequence[Option]], now: float
) -> Contract:
    best = {size: found[0] for size, found in options.items()}
    restart_s = market.changeover_s + max(job.restart_s, *(option.startup_s for option in best.values()))
    period_s = max(market.period_s, RESTARTS * restart_s)
    slots = max(0, floor((due_at - job.submitted_at) / period_s))
    kept = min(1.0, max(LEAST_KEPT, 1.0 - restart_s / period_s))
    rates = {size: period_s / (_run_s(option) * job.slower) for size, option in best.items()}
    return Contract(
        info=job,
        market=market,
        job=DeadlineJob(
            work=1.0,
            slots=slots,
            rates=_rising(rates),
            value=job.budget or 0.0,
            on_demand_price=market.on_demand_price * period_s / AN_HOUR_S,
            growing=kept,
            shrinking=kept,
            mixes=market.mixes,
            cautious=True,
        ),
        options=options,
        slot=max(1, floor((now - job.submitted_at) / period_s) + 1),
        period_s=period_s,
    )


def _by_size(job: JobInfo, market: MarketView) -> dict[int, list[Option]]:
    """Options by number of GPUs, the fastest first.

    Options for which the market has no nodes are left out.
    """
    found: dict[int, list[Option]] = defaultdict(list)
    for option in job.options:
        each = -(-option.gpus // option.nodes)
        fits = each <= market.gpus_per_node and option.nodes <= market.most_nodes
        if option.gpu_model == market.gpu_model and fits:
            found[option.gpus].append(option)
    return {size: sorted(options, key=_run_s) for size, options in sorted(found.items())}


def _rising(rates: Mapping[int, float]) -> dict[int, float]:
    """The rates, without sizes that do no more than a smaller one."""
    found: dict[int, float] = {}
    for size, rate in rates.items():
        if rate > max(found.values(), default=0.0):
            found[size] = rate
    return found


def _run_s(option: Option) -> float:
    """How long the whole job would run with an option, start-up apart."""
    return max(option.duration_s.value - option.startup_s, 1e-3)
