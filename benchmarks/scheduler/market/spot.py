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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
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
    TIGHTNESS,
    WARM_UP,
    WINDOWS,
    ZONES,
    Markets,
    job_of,
)
from benchmarks.scheduler.market.outlook import further, outlook
from benchmarks.scheduler.market.weights import selection, useless, worth
from scheduler.core.market.deciders import Decider, Situation, decide
from scheduler.core.market.optimum import optimum
from scheduler.core.market.outlook import window_starts
from scheduler.core.market.pool import DECIDERS, POOL
from scheduler.core.market.recording import AHEAD, Recording
from scheduler.core.market.replay import Life
from scheduler.core.market.types import DeadlineJob, Progress, SlotOffer


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
    "further": further,
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
