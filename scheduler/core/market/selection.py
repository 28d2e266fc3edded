"""Which decider a job gets: weights that learn from what each would have brought.

After each job all deciders are judged on the market that it met. Exponential weights follow the best of
them over all jobs. Since markets and forecasts change, they also share a little of their weight after each
job, so that a decider that was bad for long is found again soon.

Source: fixed share of Herbster and Warmuth, Tracking the Best Expert, Machine Learning 32, 1998.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

ByDecider = Mapping[str, float]

# Chosen on simulated jobs that are not those which docs/markets/spot.md judges them on.
RATE = 2.0
SHARE = 0.01  # about one change in a hundred jobs


def scaled(utilities: ByDecider) -> dict[str, float]:
    """Utilities from 0, the pool's worst, to 1, its best; all 1 where they are equal."""
    low, high = min(utilities.values()), max(utilities.values())
    if high - low <= 0:
        return dict.fromkeys(utilities, 1.0)
    return {name: (utility - low) / (high - low) for name, utility in utilities.items()}


def drawn(weights: ByDecider, job: str) -> str:
    """The decider of a job, by its id: the same whenever it is asked."""
    names = sorted(weights)
    return random.Random(job).choices(names, [weights[name] for name in names])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The weights learnt from `jobs` jobs.

    weights: for the next job. sums: scaled utilities by decider. received: what the weights brought on
    average. rate: how fast weights follow utilities. share: of the weight that all get alike after a job.
    """

    weights: ByDecider
    sums: ByDecider
    jobs: int = 0
    received: float = 0.0
    rate: float = RATE
    share: float = SHARE

    @classmethod
    def among(cls, names: Sequence[str], *, rate: float = RATE, share: float = SHARE) -> Selection:
        """The selection before anything is learnt."""
        alike, nothing = dict.fromkeys(names, 1 / len(names)), dict.fromkeys(names, 0.0)
        return cls(weights=alike, sums=nothing, rate=rate, share=share)

    @property
    def regret(self) -> float:
        """The utility that the best single decider would have brought more."""
        return max(self.sums.values()) - self.received

    def after(self, utilities: ByDecider) -> Selection:
        """The selection after one more job. utilities: of each decider, from 0 to 1.

        Raises ValueError where a decider is missing or another one is named.
        """
        if utilities.keys() != self.sums.keys():
            odd = sorted(utilities.keys() ^ self.sums.keys())
            raise ValueError(f"utilities: name each decider of the pool once; check {', '.join(odd)}")
        grown = {name: weight * exp(self.rate * utilities[name]) for name, weight in self.weights.items()}
        total, alike = sum(grown.values()), self.share / len(grown)
        return replace(
            self,
            weights={name: (1 - self.share) * weight / total + alike for name, weight in grown.items()},
            sums={name: total + utilities[name] for name, total in self.sums.items()},
            jobs=self.jobs + 1,
            received=self.received + sum(self.weights[name] * utilities[name] for name in utilities),
        )
