"""Bootstrap intervals for the mean of a few seeded runs.

They say how far the mean of a few runs may be from the mean of many. Source: Efron and
Tibshirani, An Introduction to the Bootstrap, 1993 (percentile method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:,.1f} [{self.low:,.1f}, {self.high:,.1f}]"


def bootstrap_mean(values: Sequence[float], seed: int = 0) -> Estimate:
    """The mean of independent values, shape (n,), by resampling them with replacement."""
    array = np.asarray(values, dtype=float)
    draws = np.random.default_rng(seed).integers(0, len(array), size=(_RESAMPLES, len(array)))
    low, high = np.percentile(array[draws].mean(axis=1), [2.5, 97.5])
    return Estimate(float(array.mean()), float(low), float(high))


def block_mean(values: Sequence[float], block: int, seed: int = 0) -> Estimate:
    """The mean of values in the order of time, by resampling stretches of so many of them.

    For neighbours that are alike. Source: Kunsch, The Jackknife and the Bootstrap for General Stationary
    Observations, Annals of Statistics 17, 1989.
    """
    array = np.asarray(values, dtype=float)
    long = min(block, len(array))
    shape = (_RESAMPLES, -(-len(array) // long))
    first = np.random.default_rng(seed).integers(0, len(array) - long + 1, size=shape)
    drawn = (first[:, :, None] + np.arange(long)).reshape(_RESAMPLES, -1)[:, : len(array)]
    low, high = np.percentile(array[drawn].mean(axis=1), [2.5, 97.5])
    return Estimate(float(array.mean()), float(low), float(high))


def share(hits: Sequence[bool]) -> Estimate:
    """A share of independent trials with its 95 % interval.

    Source: Wilson, Probable Inference, Journal of the American Statistical Association 22, 1927.
    """
    trials, found, z = len(hits), sum(hits) / len(hits), 1.96
    middle = (found + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * ((found * (1 - found) + z * z / (4 * trials)) / trials) ** 0.5 / (1 + z * z / trials)
    return Estimate(found, middle - half, middle + half)


def paired_change(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Estimate:
    """Mean relative change in %, seed by seed: -70 says that `after` is 70 % lower."""
    pairs = zip(before, after, strict=True)
    return bootstrap_mean([100.0 * (new / old - 1.0) for old, new in pairs], seed)
