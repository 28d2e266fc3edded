"""Possible durations of jobs: quantiles of promises and of time left.

A duration is lognormal on either side of its predicted value, so that its 80 % interval is as predicted.
"""

from __future__ import annotations

import math
import random
from functools import cached_property
from statistics import NormalDist

from knowledge.core.domain.types import Interval
from knowledge.core.recommend.duration import NORMAL_80

STRATA = 64  # draws whose luck is spread evenly (a Latin hypercube); more repeat them
UNKNOWN_S = 3600.0  # the median where nothing is predicted and nothing ran before
UNKNOWN_SPREAD = 1.5  # standard deviation of the logarithm where nothing is predicted
STATED_SPREAD = 0.5  # the same of a predicted value without an interval
LATE = 3.0  # standard deviations after which a promise says nothing more about the end

_NORMAL = NormalDist()
_STRATA = [_NORMAL.inv_cdf((number + 0.5) / STRATA) for number in range(STRATA)]


class Draws:
    """The luck of each job in each draw, as standard normal deviates."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._of: dict[str, list[float]] = {}

    def z(self, job: str, draw: int) -> float:
        """The same whenever the same job and draw are asked about."""
        if job not in self._of:
            self._of[job] = random.Random(f"{self.seed}/{job}").sample(_STRATA, STRATA)
        return self._of[job][draw % STRATA]


class Spread:
    """A predicted number of seconds as a distribution.

    unknown_s: its median where nothing is predicted (a value of 0).
    """

    def __init__(self, predicted: Interval, unknown_s: float = UNKNOWN_S) -> None:
        self.predicted, self.unknown_s = predicted, unknown_s

    @property
    def median_s(self) -> float:
        return self.predicted.value if self.predicted.value > 0 else self.unknown_s

    @cached_property
    def sigmas(self) -> tuple[float, float]:
        """Standard deviations of the logarithm, below and above the median."""
        value, low, high = self.predicted.value, self.predicted.low, self.predicted.high
        if not value > 0:
            return UNKNOWN_SPREAD, UNKNOWN_SPREAD
        below = math.log(value / low) / NORMAL_80 if low and 0 < low <= value else None
        above = math.log(high / value) / NORMAL_80 if high and high >= value else None
        either = next((sigma for sigma in (above, below) if sigma is not None), STATED_SPREAD)
        return either if below is None else below, either if above is None else above

    def at(self, z: float) -> float:
        """The quantile at a standard normal deviate."""
        return self.median_s * math.exp(self.sigmas[z > 0] * z)

    def beyond(self, seconds: float) -> float:
        """The chance that it takes longer."""
        if seconds <= 0:
            return 1.0
        reached = math.log(seconds / self.median_s)
        return 1 - _NORMAL.cdf(reached / max(self.sigmas[reached > 0], 1e-9))

    def left_at(self, z: float, elapsed_s: float) -> float:
        """The quantile of what is left, given that it has taken so long already."""
        if elapsed_s <= 0:
            return self.at(z)
        reached = math.log(elapsed_s / self.median_s)
        passed = reached / max(self.sigmas[reached > 0], 1e-9)
        if passed < LATE:
            open_share = 1 - _NORMAL.cdf(passed)
            quantile = 1 - open_share * (1 - _NORMAL.cdf(z))
            return max(0.0, self.at(_NORMAL.inv_cdf(min(quantile, 1 - 1e-12))) - elapsed_s)
        # Beyond that, the lognormal's tail: exponential, with the mean that it has left on average.
        mean_s = elapsed_s * self.sigmas[1] / passed
        return -mean_s * math.log(1 - _NORMAL.cdf(z))
