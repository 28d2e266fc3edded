"""How often the money of a job is within the interval that was stated before, market by market."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

from benchmarks.scheduler.bootstrap import block_mean, share
from benchmarks.scheduler.market.markets import (
    FURTHER,
    SLOTS,
    TIGHTNESS,
    WARM_UP,
    ZONES,
    Markets,
    job_of,
)
from scheduler.core.market.outlook import outlook_of, window_starts
from scheduler.core.market.pool import POOL
from scheduler.core.market.recording import Recording
from scheduler.core.market.replay import Life

STATED, EVERY, WINDOWS = ("greedy", "ahanp-0.9", "to-go-5-1"), 2, 60
AIM = (0.75, 0.88)


def outlook(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 5: on the two markets of 16 nodes, at a moment each hour."""
    return [row for zone in ZONES for row in _rows(zone, markets.of(zone))]


def further(markets: Markets) -> list[dict[str, Any]]:
    """The same on markets of one node with eight GPUs, for weeks."""
    return [row for name in FURTHER for row in _rows(name, markets.node_of_eight(name))]


def _rows(name: str, recording: Recording) -> Iterator[dict[str, Any]]:
    """By tightness and decider.

    binomial: as if moments were independent. blocks: by resampling stretches of half a day, as long as a job,
    since jobs that begin an hour apart live through much the same.
    """
    for tightness in TIGHTNESS:
        job = replace(job_of(tightness), cautious=True)  # as plans are, and as the live policy is
        for decider in STATED:
            live = cache(partial(recording.live, job, POOL[decider]))
            moments = range(WARM_UP + 2 * SLOTS, len(recording) - SLOTS + 1, EVERY)
            inside = [_is_inside(live, decider, start) for start in moments]
            binomial, blocks = share(inside), block_mean(inside, SLOTS // EVERY)
            yield {
                "market": name,
                "tightness": tightness,
                "decider": decider,
                "moments": len(inside),
                "binomial": binomial,
                "blocks": blocks,
                "in_aim": AIM[0] <= binomial.mean <= AIM[1],
                "off_beyond_chance": blocks.low > AIM[1] or blocks.high < AIM[0],
            }


def _is_inside(live: Callable[[int], Life], name: str, start: int) -> bool:
    """Does the job that starts now cost what the windows that have ended say?"""
    known = window_starts(start, SLOTS, WINDOWS)
    before = outlook_of(name, known, [live(one) for one in known], SLOTS)
    money = live(start).cost - live(start).spare_cost
    return before.money_low - 1e-9 <= money <= before.money_high + 1e-9
