"""Deadlines on spot and on-demand nodes: money, selection, outlooks, and the time of a decision.

python benchmarks/scheduler/market/spot.py [PART ...] [--traces FOLDER] [--json OUT]

Counts of available nodes are those of SkyPilot's two 16-node series (5-minute steps, 2023), prices those of
AWS p3.2xlarge in the same zone (2020), both over slots of 30 minutes. The pairs are ours: no public series
has price and nodes of one market. Windows are 12 h, sizes 1, 2, 4, 8, a doubling of GPUs does 1.9 times the
work, a restart takes 2 minutes. Tightness is the work over what 8 GPUs could do in the window.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from math import log2
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.scheduler.bootstrap import Estimate, bootstrap_mean
from benchmarks.scheduler.market.markets import (
    EFFICIENCY,
    SLOTS,
    WARM_UP,
    WINDOWS,
    Markets,
    job_of,
)
from scheduler.core.market.deciders import Decider, Situation, decide
from scheduler.core.market.optimum import optimum
from scheduler.core.market.outlook import outlook_of, window_starts
from scheduler.core.market.pool import DECIDERS, FORESEEING, POOL
from scheduler.core.market.recording import AHEAD, Recording
from scheduler.core.market.replay import Foresee, Life
from scheduler.core.market.selection import Selection, learning_rate, regret_bound, scaled
from scheduler.core.market.types import DeadlineJob, Progress, SlotOffer

TIGHTNESS = (0.4, 0.6, 0.8)
ZONES = ("us-east-2b", "us-west-2a")
JOBS, TRUE_JOBS, USELESS_JOBS, SEEDS = 60, 30, 20, 4
KINDS = ("true", "ours", "drawn", "inverted")
WORTH_SEED = 100  # no seed of the series that weights are judged on
TOLD, EVERY, OUTLOOK_WINDOWS = ("greedy", "ahanp-0.9", "to-go-5-1"), 6, 60


def starts_of(recording: Recording) -> list[int]:
    return [WARM_UP + start for start in window_starts(len(recording) - WARM_UP, SLOTS, WINDOWS)]


def utility(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 2: utility over that of on-demand nodes alone, window by window."""
    rows = []
    for zone in ZONES:
        recording = markets.of(zone)
        starts = starts_of(recording)
        drought = [start for start in starts if start >= len(recording) * 2 // 3]
        for tightness in TIGHTNESS:
            job = job_of(tightness)
            base = job.value - recording.live(job, DECIDERS["on-demand"], starts[0]).cost
            found = {name: _lives(recording, job, decider, starts) for name, decider in DECIDERS.items()}
            for name in ("pace-5-1", "to-go-5-1"):
                found[f"{name}, true forecasts"] = [
                    recording.live(job, POOL[name], start, recording.true(start)) for start in starts
                ]
            for name, lives in found.items():
                ratios = [life.utility / base for life in lives]
                last = [ratio for start, ratio in zip(starts, ratios, strict=True) if start in drought]
                rows.append(
                    {"zone": zone, "tightness": tightness, "decider": name, "ratio": bootstrap_mean(ratios),
                     "last_third": bootstrap_mean(last), "late": sum(not life.in_time for life in lives),
                     "interruptions": float(np.mean([life.interruptions for life in lives]))}
                )  # fmt: skip
            best = [optimum(job, recording.offers[start : start + SLOTS]) / base for start in starts]
            rows.append({"zone": zone, "tightness": tightness, "decider": "optimum",
                         "ratio": bootstrap_mean(best)})  # fmt: skip
    return rows


def _lives(recording: Recording, job: DeadlineJob, decider: Decider, starts: Sequence[int]) -> list[Life]:
    return [recording.live(job, decider, start) for start in starts]


def _jobs(markets: Markets, number: int, seed: int) -> Iterator[tuple[Recording, DeadlineJob, int]]:
    """Jobs of mixed regimes: zones, today's and auctioned prices, tightness, moments."""
    rng = random.Random(seed)
    regimes = [*(markets.of(zone) for zone in ZONES), *(markets.auction(zone) for zone in ZONES)]
    for _ in range(number):
        recording = rng.choice(regimes)
        yield recording, job_of(rng.choice(TIGHTNESS)), rng.randint(WARM_UP, len(recording) - SLOTS)


def _utilities(
    recording: Recording, job: DeadlineJob, start: int, foresee: Foresee | None = None
) -> dict[str, float]:
    """The utility of each decider of the pool."""
    return {name: recording.live(job, one, start, foresee).utility for name, one in POOL.items()}


def selection(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 2: learnt weights against the best fixed decider, over 60 jobs of mixed regimes."""
    rows = []
    for seed in range(SEEDS):
        constant = Selection.among(list(POOL), learning_rate(JOBS, len(POOL)))
        falling = Selection.among(list(POOL))
        received, sums = 0.0, dict.fromkeys(POOL, 0.0)
        for recording, job, start in _jobs(markets, JOBS, seed):
            found = _utilities(recording, job, start)
            received += sum(falling.weights[name] * found[name] for name in POOL)
            sums = {name: total + found[name] for name, total in sums.items()}
            constant, falling = constant.after(scaled(found)), falling.after(scaled(found))
        best = max(sums, key=lambda name: sums[name])
        scaled_best = max(falling.sums.values())
        rows.append(
            {"seed": seed, "best": best, "utility_of_best": received / sums[best],
             "scaled_of_best": falling.received / scaled_best, "regret": constant.regret,
             "bound": regret_bound(JOBS, len(POOL))}
        )  # fmt: skip
    return rows


def useless(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 2: forecasts are true for 30 jobs, then drawn at random."""
    rows = []
    for seed in range(SEEDS):
        learnt, rng = Selection.among(list(POOL)), random.Random(seed)
        before = learnt
        for number, (recording, job, start) in enumerate(_jobs(markets, TRUE_JOBS + USELESS_JOBS, seed)):
            if number == TRUE_JOBS:
                before = learnt
            foresee = recording.true(start) if number < TRUE_JOBS else _drawn(recording, rng)
            learnt = learnt.after(scaled(_utilities(recording, job, start, foresee)))
        rows.append(
            {"seed": seed, "before": _weight(before, ""), "after": _weight(learnt, ""),
             "pace_before": _weight(before, "pace"), "pace_after": _weight(learnt, "pace")}
        )  # fmt: skip
    return rows


def worth(markets: Markets) -> list[dict[str, Any]]:
    """What forecasts are worth: scaled utility by decider and kind of forecast, over 60 mixed jobs.

    It says why weights stay with deciders that foresee, even where the forecasts say nothing.
    """
    sums: dict[str, dict[str, float]] = {kind: dict.fromkeys(POOL, 0.0) for kind in KINDS}
    rng = random.Random(WORTH_SEED)
    for recording, job, start in _jobs(markets, JOBS, WORTH_SEED):
        by_kind = {
            "true": recording.true(start), "ours": None, "drawn": _drawn(recording, rng),
            "inverted": _inverted(recording, start),
        }  # fmt: skip
        for kind, foresee in by_kind.items():
            for name, utility in scaled(_utilities(recording, job, start, foresee)).items():
                sums[kind][name] += utility / JOBS
    return [
        {"forecasts": kind, "decider": name, "scaled": mean}
        for kind, by_name in sums.items()
        for name, mean in by_name.items()
    ]


def _inverted(recording: Recording, start: int) -> Foresee:
    """Forecasts that mislead: plenty of nodes where there will be none, and none where there will be."""
    most = max(offer.available for offer in recording.offers)
    true = recording.true(start)
    return lambda slot: [SlotOffer(offer.price, most - offer.available) for offer in true(slot)]


def _weight(learnt: Selection, of: str) -> float:
    """The weight of the deciders that foresee and whose names begin so."""
    weights = learnt.weights
    return sum(weights[name] for name in FORESEEING if name.startswith(of))


def _drawn(recording: Recording, rng: random.Random) -> Foresee:
    """Forecasts that say nothing: offers of any other time."""
    return lambda _: tuple(rng.choice(recording.offers) for _ in range(AHEAD))


def outlook(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 5: how often the money of a job is within the interval that was told before."""
    rows = []
    for zone in ZONES:
        recording = markets.of(zone)
        for tightness in TIGHTNESS:
            job = replace(job_of(tightness), cautious=True)  # as plans are, and as the live policy is
            for name in TOLD:
                live = cache(partial(recording.live, job, POOL[name]))
                moments = range(WARM_UP + 2 * SLOTS, len(recording) - SLOTS, EVERY)
                inside = [_is_inside(live, name, start) for start in moments]
                rows.append({"zone": zone, "tightness": tightness, "decider": name, "moments": len(inside),
                             "inside": bootstrap_mean(inside)})  # fmt: skip
    return rows


def _is_inside(live: Callable[[int], Life], name: str, start: int) -> bool:
    """Does the job that starts now cost what the windows that have ended say?"""
    known = window_starts(start, SLOTS, OUTLOOK_WINDOWS)
    before = outlook_of(name, known, [live(one) for one in known], SLOTS)
    money = live(start).cost - live(start).spare_cost
    return before.money_low - 1e-9 <= money <= before.money_high + 1e-9


def time(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 3: CPU seconds of a decision, one job at a time and a hundred."""
    del markets  # offers are drawn
    rows, rng = [], random.Random(0)
    rates = {size: size * EFFICIENCY ** log2(size) for size in (1, 2, 4, 8, 16)}
    job = replace(job_of(0.6), rates=rates, work=0.6 * SLOTS * rates[16])
    offers = [SlotOffer(rng.uniform(0.3, 0.5), float(rng.randint(0, 16))) for _ in range(AHEAD + 1)]
    for name in ("greedy", "pace-5-1", "pace-5-6", "to-go-5-6"):
        began = process_time()
        for _ in range(100):
            progress = Progress(rng.randint(1, 8), rng.uniform(0, 0.3) * job.work, rng.choice(job.sizes))
            now = Situation(job=job, progress=progress, offer=offers[0], foreseen=offers[1:],
                            usual=SlotOffer(0.4, 8.0))  # fmt: skip
            decide(POOL[name], now)
        spent = process_time() - began
        rows.append({"decider": name, "one_ms": spent * 10, "hundred_s": spent})
    return rows


PARTS = {
    "utility": utility,
    "selection": selection,
    "useless": useless,
    "worth": worth,
    "time": time,
    "outlook": outlook,
}


def _said(row: Mapping[str, Any]) -> str:
    def said(value: Any) -> str:
        if isinstance(value, Estimate):
            return f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    return "  ".join(f"{name} {said(value)}" for name, value in row.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--traces", type=Path, default=Path("../shared/data/traces"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    markets, found = Markets(options.traces), {}
    for part in options.parts or PARTS:
        rows = PARTS[part](markets)
        print(part, *map(_said, rows), sep="\n  ", flush=True)
        found[part] = rows
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, default=asdict) + "\n")


if __name__ == "__main__":
    main()
