"""Prices of GPUs at which the jobs together want no more than there are.

Each job then takes the bundle that costs it least, its GPUs paid for. These are the dual prices of the
linear relaxation: no choice within the limits costs less in all than this does, and a bundle that is clearly
dearer for its job than its best one is in no good choice.
Few limits have few prices, whatever the number of jobs, so Newton's method finds them quickly. It needs a
smooth function: every job spreads over its bundles by a softmin, at ever lower temperatures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.core.divide.columns import Columns, Floats, Mask

# Temperatures as shares of the largest gain: first for some of the jobs, with as many of the GPUs.
ROUGHLY, FINELY = (0.1, 0.01), (0.01, 0.001, 0.0001)
SAMPLE = 4_000  # columns
REACH = 30.0  # temperatures above the best at which a bundle has no share any more
LENGTHS = tuple(0.25**power for power in range(6))
STRIDE = 3.0  # temperatures: no price moves further in a step, as the function bends elsewhere
STEPS = 20  # at one temperature
NEAR = 0.5  # GPUs: so close do the jobs' wishes come to what there is
RIDGE = 1e-9


class Relaxation(NamedTuple):
    """A cost that no choice undercuts, and how far columns lie from the best.

    excess: (columns,), the cost at the prices above that of the job's best column, or of idling.
    idle: (columns,), the same of idling, for each column's job.
    """

    bound: float
    excess: Floats
    idle: Floats


class _Smooth(NamedTuple):
    """The dual function at one temperature, its slope and how it bends down."""

    value: float
    slope: Floats
    bend: Floats


class _Jobs:
    """The wishes of jobs at given prices.

    Counts are floats here, which multiply much faster.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns, self.uses = columns, columns.uses.astype(float)
        self.starts = columns.starts
        self.counts = np.diff(self.starts, append=columns.count)

    def where(self, kept: Mask) -> _Jobs:
        return _Jobs(self.columns.where(kept))

    def relaxation(self, prices: Floats) -> Relaxation:
        paid, best = self._paid(prices)
        of_job = np.repeat(best, self.counts)
        return Relaxation(float(best.sum() - prices @ self.columns.capacity), paid - of_job, -of_job)

    def smooth(self, prices: Floats, temperature: float) -> _Smooth:
        paid, best = self._paid(prices)
        weights = np.exp((np.repeat(best, self.counts) - paid) / temperature)
        sums = np.add.reduceat(weights, self.starts) + np.exp(best / temperature)  # idling has its share
        wanted = weights / np.repeat(sums, self.counts) * self.uses
        by_job = np.add.reduceat(wanted, self.starts, axis=1)
        return _Smooth(
            float((best - temperature * np.log(sums)).sum() - prices @ self.columns.capacity),
            by_job.sum(axis=1) - self.columns.capacity,
            (wanted @ self.uses.T - by_job @ by_job.T) / temperature,
        )

    def _paid(self, prices: Floats) -> tuple[Floats, Floats]:
        """The cost of each column with its GPUs, and the least for each job."""
        paid = self.columns.costs + prices @ self.uses
        return paid, np.minimum(np.minimum.reduceat(paid, self.starts), 0.0)


def relax(columns: Columns) -> Relaxation:
    """Return the relaxation at prices that nearly maximise its bound."""
    gain = max(-float(columns.costs.min()), 0.0)
    prices = np.zeros(len(columns.capacity))
    jobs = near = _Jobs(columns)
    if gain:
        few = _Jobs(columns.sample(SAMPLE))
        for share in ROUGHLY:
            prices = _climb(few, prices, share * gain)
        for share in FINELY:
            near = near.where(near.relaxation(prices).excess < REACH * share * gain)
            prices = _climb(near, prices, share * gain)
    return jobs.relaxation(prices)


def _climb(jobs: _Jobs, prices: Floats, temperature: float) -> Floats:
    """Newton's method from these prices, none of which becomes negative."""
    here = jobs.smooth(prices, temperature)
    for _ in range(STEPS):
        free = (prices > 0) | (here.slope > 0)
        if not free.any() or np.abs(here.slope[free]).max() < NEAR:
            break
        bend = here.bend[np.ix_(free, free)]
        step = np.zeros_like(prices)
        step[free] = np.linalg.solve(bend + RIDGE * (1 + bend.max()) * np.eye(len(bend)), here.slope[free])
        step *= min(1.0, STRIDE * temperature / max(np.abs(step).max(), RIDGE))
        for length in LENGTHS:
            tried = np.maximum(prices + length * step, 0.0)
            there = jobs.smooth(tried, temperature)
            if there.value > here.value:
                prices, here = tried, there
                break
        else:
            break
    return prices
