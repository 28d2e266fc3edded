"""Which decider a job gets: weights that learn from what each would have brought.

Exponential weights with full information (Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, 2006):
after each job all deciders are judged on the market that it met.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

ByDecider = Mapping[str, float]


def learning_rate(job: int, deciders: int) -> float:
    """η_k of the k-th job.

    Of the last job, it is the constant rate for all of them.
    """
    return sqrt(8 * log(deciders) / job)


def regret_bound(jobs: int, deciders: int) -> float:
    """The most that the weights can lose to the best decider in so many jobs.

    It holds for the constant rate that belongs to that number of jobs.
    """
    return sqrt(jobs * log(deciders) / 2)


def scaled(utilities: ByDecider) -> dict[str, float]:
    """Utilities from 0, the pool's worst, to 1, its best; all 1 where they are equal."""
    low, high = min(utilities.values()), max(utilities.values())
    if high - low <= 0:
        return dict.fromkeys(utilities, 1.0)
    return {name: (utility - low) / (high - low) for name, utility in utilities.items()}


def weights_of(sums: ByDecider, rate: float) -> dict[str, float]:
    """Weights, 1 in all, of deciders with these sums of scaled utilities."""
    most = max(sums.values())
    raw = {name: exp(rate * (total - most)) for name, total in sums.items()}
    total = sum(raw.values())
    return {name: weight / total for name, weight in raw.items()}


def drawn(weights: ByDecider, job: str) -> str:
    """The decider of a job, by its id: the same whenever it is asked."""
    names = sorted(weights)
    return random.Random(job).choices(names, [weights[name] for name in names])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What was learnt from `jobs` jobs.

    sums: scaled utilities by decider. received: what the weights brought on average. rate: a
    constant η; None: the one that falls with the number of jobs.
    """

    sums: ByDecider
    jobs: int = 0
    received: float = 0.0
    rate: float | None = None

    @classmethod
    def among(cls, names: Sequence[str], rate: float | None = None) -> Selection:
        """Nothing is learnt yet."""
        return cls(sums=dict.fromkeys(names, 0.0), rate=rate)

    @property
    def weights(self) -> dict[str, float]:
        """For the next job."""
        rate = learning_rate(self.jobs + 1, len(self.sums)) if self.rate is None else self.rate
        return weights_of(self.sums, rate)

    @property
    def regret(self) -> float:
        """What the best single decider would have brought more."""
        return max(self.sums.values()) - self.received

    def after(self, utilities: ByDecider) -> Selection:
        """With one more job. utilities: of each decider, from 0 to 1.

        Raises ValueError where a decider is missing or another one is named.
        """
        if utilities.keys() != self.sums.keys():
            odd = sorted(utilities.keys() ^ self.sums.keys())
            raise ValueError(f"utilities: name each decider of the pool once; check {', '.join(odd)}")
        weights = self.weights
        return Selection(
            sums={name: total + utilities[name] for name, total in self.sums.items()},
            jobs=self.jobs + 1,
            received=self.received + sum(weights[name] * utilities[name] for name in weights),
            rate=self.rate,
        )
