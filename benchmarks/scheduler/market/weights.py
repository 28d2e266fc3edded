"""How weights of deciders learn: over jobs of mixed regimes, and after forecasts turned useless.

RATE and SHARE of `scheduler.core.market.selection` were chosen on seeds 10 to 27.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.scheduler.market.bounds import learning_rate, regret_bound, tracking_bound, weights_of
from benchmarks.scheduler.market.markets import SLOTS, TIGHTNESS, WARM_UP, ZONES, Markets, job_of
from scheduler.core.market.pool import FORESEEING, POOL
from scheduler.core.market.recording import AHEAD, Recording
from scheduler.core.market.replay import Foresee
from scheduler.core.market.selection import Selection, scaled
from scheduler.core.market.types import DeadlineJob, SlotOffer

JOBS, TRUE_JOBS, USELESS_JOBS = 60, 30, 20
JUDGED_SEEDS = range(30, 38)
WORTH_SEED = 100
KINDS = ("true", "ours", "drawn", "inverted")

ByDecider = Mapping[str, float]


def selection(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 2: learnt weights against the best fixed decider, over 60 jobs of mixed regimes."""
    rows = []
    for seed in JUDGED_SEEDS:
        found = [_utilities(*one) for one in _jobs(markets, JOBS, seed)]
        best = max(POOL, key=lambda name: _brought(found, name))
        shared = _learnt(found, Selection.among(list(POOL)))[-1]
        rate = learning_rate(JOBS, len(POOL))
        constant = _learnt(found, Selection.among(list(POOL), rate=rate, share=0.0))[-1]
        rows.append(
            {"seed": seed, "best": best,
             "utility_of_best": _received(found, _shared_weights(found)) / _brought(found, best),
             "falling_of_best": _received(found, _falling_weights(found)) / _brought(found, best),
             "scaled_of_best": shared.received / max(shared.sums.values()),
             "regret": constant.regret, "bound": regret_bound(JOBS, len(POOL)),
             "tracking_regret": _with_one_change(found) - shared.received,
             "tracking_bound": tracking_bound(JOBS, 1, len(POOL))}
        )  # fmt: skip
    return rows


def useless(markets: Markets) -> list[dict[str, Any]]:
    """Acceptance 2: forecasts are true for 30 jobs, then drawn at random.

    of_best: utility over that of the best fixed decider of the jobs with useless forecasts. falling: with a
    learning rate that falls, and nothing shared.
    """
    rows = []
    for seed in JUDGED_SEEDS:
        rng = random.Random(seed)
        found = [
            _utilities(*one, one[0].true(one[2]) if number < TRUE_JOBS else _drawn(one[0], rng))
            for number, one in enumerate(_jobs(markets, TRUE_JOBS + USELESS_JOBS, seed))
        ]
        row: dict[str, Any] = {"seed": seed}
        for learnt, weights in (("", _shared_weights(found)), ("falling_", _falling_weights(found))):
            for kind in ("pace", "to-go"):
                row[f"{learnt}{kind}_before"] = _weight(weights[TRUE_JOBS], kind)
                row[f"{learnt}{kind}_after"] = _weight(weights[-1], kind)
            after = found[TRUE_JOBS:]
            best = max(_brought(after, name) for name in POOL)
            row[f"{learnt}of_best"] = _received(after, weights[TRUE_JOBS:]) / best
        rows.append(row)
    return rows


def worth(markets: Markets) -> list[dict[str, Any]]:
    """The worth of forecasts: scaled utility by decider and kind of forecast, over 60 mixed jobs.

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


def _learnt(found: Sequence[ByDecider], selection: Selection) -> list[Selection]:
    """Before the first job, and after each."""
    steps = [selection]
    for utilities in found:
        steps.append(steps[-1].after(scaled(utilities)))
    return steps


def _shared_weights(found: Sequence[ByDecider]) -> list[ByDecider]:
    return [step.weights for step in _learnt(found, Selection.among(list(POOL)))]


def _falling_weights(found: Sequence[ByDecider]) -> list[ByDecider]:
    return [
        weights_of(step.sums, learning_rate(step.jobs + 1, len(POOL)))
        for step in _learnt(found, Selection.among(list(POOL)))
    ]


def _received(found: Sequence[ByDecider], weights: Sequence[ByDecider]) -> float:
    """The utility of jobs that draw their decider by these weights, on average."""
    return sum(
        by_name[name] * utilities[name]
        for utilities, by_name in zip(found, weights, strict=False)
        for name in POOL
    )


def _brought(found: Sequence[ByDecider], name: str) -> float:
    return sum(utilities[name] for utilities in found)


def _with_one_change(found: Sequence[ByDecider]) -> float:
    """Scaled utility of the best decider up to some job, and the best one from there on."""
    gains = np.array([list(scaled(utilities).values()) for utilities in found])
    until = np.concatenate([np.zeros((1, len(POOL))), np.cumsum(gains, axis=0)])
    return float((until.max(axis=1) + (until[-1] - until).max(axis=1)).max())


def _weight(weights: ByDecider, kind: str) -> float:
    """The weight of the deciders that foresee and whose names begin so."""
    return sum(weights[name] for name in FORESEEING if name.startswith(kind))


def _drawn(recording: Recording, rng: random.Random) -> Foresee:
    """Forecasts that say nothing: offers of any other time."""
    return lambda _: tuple(rng.choice(recording.offers) for _ in range(AHEAD))


def _inverted(recording: Recording, start: int) -> Foresee:
    """Forecasts that mislead: plenty of nodes where there will be none, and none where there will be."""
    most = max(offer.available for offer in recording.offers)
    true = recording.true(start)
    return lambda slot: [SlotOffer(offer.price, most - offer.available) for offer in true(slot)]
