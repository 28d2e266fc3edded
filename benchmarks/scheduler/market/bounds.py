"""Bounds on what weights that learn can lose, and the falling rate that needs no number of jobs.

Source: Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, 2006, sections 2.2 and 5.2.
"""

from __future__ import annotations

from math import exp, log, sqrt

from scheduler.core.market.selection import RATE, SHARE, ByDecider


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


def tracking_bound(
    jobs: int, changes: int, deciders: int, *, rate: float = RATE, share: float = SHARE
) -> float:
    """The most that shared weights can lose to the best sequence with so many changes.

    Section 5.2.
    """
    kept = jobs - changes - 1
    rare = changes * log(1 / share) + kept * log(1 / (1 - share))
    return ((changes + 1) * log(deciders) + rare) / rate + rate * jobs / 8


def weights_of(sums: ByDecider, rate: float) -> dict[str, float]:
    """Weights, 1 in all, of deciders with these sums of scaled utilities."""
    most = max(sums.values())
    raw = {name: exp(rate * (total - most)) for name, total in sums.items()}
    total = sum(raw.values())
    return {name: weight / total for name, weight in raw.items()}
