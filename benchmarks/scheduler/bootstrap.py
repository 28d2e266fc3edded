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


def paired_change(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Estimate:
    """Mean relative change in %, seed by seed: -70 says that `after` is 70 % lower."""
    pairs = zip(before, after, strict=True)
    return bootstrap_mean([100.0 * (new / old - 1.0) for old, new in pairs], seed)
