"""Intervals over seeds, by samples whose answer is known."""

from __future__ import annotations

import random

import pytest

from benchmarks.scheduler.bootstrap import block_mean, bootstrap_mean, paired_change, share


def test_an_interval_covers_the_mean_and_pairs_are_compared_seed_by_seed() -> None:
    estimate = bootstrap_mean([1.0, 2.0, 3.0, 4.0])
    assert estimate.low <= 2.5 == estimate.mean <= estimate.high
    change = paired_change([100, 1000], [50, 500])
    assert (change.mean, change.low, change.high) == (-50, -50, -50)


def test_neighbours_that_are_alike_count_for_less() -> None:
    """Four hundred values in runs of ten say little more than the forty values that they repeat."""
    rng = random.Random(18)
    once = [float(rng.random() < 0.5) for _ in range(40)]
    runs = [value for value in once for _ in range(10)]
    blocks, alone, of_once = block_mean(runs, 20), bootstrap_mean(runs), bootstrap_mean(once)
    assert blocks.mean == pytest.approx(alone.mean)
    assert blocks.high - blocks.low > 2 * (alone.high - alone.low)
    assert blocks.high - blocks.low == pytest.approx(of_once.high - of_once.low, rel=0.25)
    assert block_mean([1.0, 2.0], 24).mean == 1.5  # a series shorter than a block


def test_the_interval_of_a_share_is_wilsons() -> None:
    found = share([True] * 8 + [False] * 2)
    assert found.mean == 0.8
    assert (found.low, found.high) == pytest.approx((0.490, 0.943), abs=5e-4)
    assert share([True] * 5).high == pytest.approx(1.0)
