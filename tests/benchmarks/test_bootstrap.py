"""Intervals over seeds, by samples whose answer is known."""

from __future__ import annotations

from benchmarks.scheduler.bootstrap import bootstrap_mean, paired_change


def test_an_interval_covers_the_mean_and_pairs_are_compared_seed_by_seed() -> None:
    estimate = bootstrap_mean([1.0, 2.0, 3.0, 4.0])
    assert estimate.low <= 2.5 == estimate.mean <= estimate.high
    change = paired_change([100, 1000], [50, 500])
    assert (change.mean, change.low, change.high) == (-50, -50, -50)
