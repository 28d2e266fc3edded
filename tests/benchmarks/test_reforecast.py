"""The benchmark of the time left, on a few runs of its training half."""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from benchmarks.scheduler.reforecast import MARKS, at_marks, inside, readings
from benchmarks.scheduler.reforecast_runs import HALVES, disturbed, recorded, runs


def test_the_time_left_is_nearer_than_the_promise_and_its_interval_is_honest() -> None:
    marked = [at_marks(list(readings(run))) for run in runs("training", 240)]
    for mark in MARKS:
        found = [reported[mark] for reported in marked if mark in reported]
        held = np.mean([inside(r.left, r.true_s) for r in found])
        assert 0.7 <= held <= 0.9
        reported = median(abs(math.log(r.left.value / r.true_s)) for r in found)
        assert reported < median(abs(math.log(r.promise_s / r.true_s)) for r in found) / 1.5


def test_no_recorded_training_is_in_both_halves() -> None:
    one, other = ({tuple(steps) for steps in recorded(half)} for half in HALVES)
    assert one
    assert other
    assert not one & other


def test_a_disturbance_changes_only_what_comes_after_it() -> None:
    rng, steps = np.random.default_rng(1), np.ones(100)
    for _ in range(50):
        what, changed = disturbed(rng, steps)
        touched = np.flatnonzero(changed != steps)
        assert (len(touched) == 0) == (what == "none")
        assert what != "stall" or len(touched) == 1
