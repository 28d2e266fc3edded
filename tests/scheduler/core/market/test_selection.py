"""Weights that learn: the worked example, the bound, and draws that stay the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from benchmarks.scheduler.market.bounds import learning_rate, regret_bound, tracking_bound, weights_of
from scheduler.core.market.selection import Selection, drawn, scaled

UTILITIES = [(0.6, 0.4, 0.2), (0.7, 0.5, 0.1), (0.5, 0.6, 0.3), (0.8, 0.4, 0.2)]
NAMES = ("a", "b", "c")


def learnt(rate: float) -> Selection:
    selection = Selection.among(NAMES, rate=rate, share=0.0)
    for utilities in UTILITIES:
        selection = selection.after(dict(zip(NAMES, utilities, strict=True)))
    return selection


def test_the_worked_example_with_a_constant_rate() -> None:
    rate = learning_rate(4, 3)
    assert rate == pytest.approx(1.4823, abs=5e-5)
    selection = learnt(rate)
    assert list(selection.weights.values()) == pytest.approx([0.7024, 0.2489, 0.0487], abs=5e-5)
    assert selection.received == pytest.approx(1.9987, abs=5e-5)
    assert selection.regret == pytest.approx(0.6013, abs=5e-5)
    assert regret_bound(4, 3) == pytest.approx(1.4823, abs=5e-5)


def test_the_worked_example_with_the_falling_rate() -> None:
    sums = dict(zip(NAMES, map(sum, zip(*UTILITIES, strict=True)), strict=True))
    weights = weights_of(sums, learning_rate(5, 3))
    assert list(weights.values()) == pytest.approx([0.6724, 0.2658, 0.0618], abs=5e-5)


def test_regret_is_within_the_bound_whatever_comes() -> None:
    rng = random.Random(18)
    for _ in range(50):
        jobs, names = rng.randint(1, 80), [str(n) for n in range(rng.randint(2, 12))]
        selection = Selection.among(names, rate=learning_rate(jobs, len(names)), share=0.0)
        favoured = rng.choice(names)
        for _ in range(jobs):
            favoured = rng.choice(names) if rng.random() < 0.05 else favoured
            selection = selection.after({n: float(n == favoured) or rng.random() / 2 for n in names})
        assert selection.regret <= regret_bound(jobs, len(names)) + 1e-9


def test_shared_weights_keep_the_bound_against_sequences_that_change() -> None:
    """Each job favours one decider; which one changes now and then, as after a change of forecasts."""
    rng = random.Random(18)
    for _ in range(50):
        jobs, names = rng.randint(2, 80), [str(n) for n in range(rng.randint(2, 12))]
        rate, share = rng.uniform(0.3, 3.0), rng.uniform(0.005, 0.2)
        selection, rows = Selection.among(names, rate=rate, share=share), []
        favoured = rng.choice(names)
        for _ in range(jobs):
            favoured = rng.choice(names) if rng.random() < 0.05 else favoured
            rows.append({n: float(n == favoured) or rng.random() / 2 for n in names})
            selection = selection.after(rows[-1])
        for changes in range(min(jobs, 4)):
            bound = tracking_bound(jobs, changes, len(names), rate=rate, share=share)
            assert best_sequence(rows, changes) - selection.received <= bound + 1e-9


def best_sequence(rows: Sequence[Mapping[str, float]], changes: int) -> float:
    """The worth of the best sequence of deciders with at most so many changes."""
    best = [dict.fromkeys(rows[0], 0.0) for _ in range(changes + 1)]  # by changes so far, and the decider now
    for row in rows:
        best = [
            {
                name: row[name] + max(best[used][name], max(best[used - 1].values()) if used else 0.0)
                for name in row
            }
            for used in range(changes + 1)
        ]
    return max(best[changes].values())


def test_a_switch_is_followed_however_long_it_was_not() -> None:
    """Weights without a share would need as many jobs again as had favoured the other."""
    first, second = {"a": 1.0, "b": 0.5, "c": 0.0}, {"a": 0.0, "b": 1.0, "c": 0.5}
    shared, kept = Selection.among(NAMES), Selection.among(NAMES, share=0.0)
    for utilities in [first] * 200 + [second] * 8:
        shared, kept = shared.after(utilities), kept.after(utilities)
    assert shared.weights["b"] > 0.9
    assert kept.weights["a"] > 0.9
    assert sum(shared.weights.values()) == pytest.approx(1.0)


def test_a_decider_that_is_not_judged_is_an_error() -> None:
    with pytest.raises(ValueError, match="name each decider of the pool once; check c"):
        Selection.among(NAMES).after({"a": 1.0, "b": 0.0})


def test_utilities_are_scaled_over_the_pool() -> None:
    assert scaled({"a": -2.0, "b": 0.0, "c": 2.0}) == {"a": 0.0, "b": 0.5, "c": 1.0}
    assert scaled({"a": 3.0, "b": 3.0}) == {"a": 1.0, "b": 1.0}


def test_a_job_draws_the_same_decider_each_time_and_jobs_draw_by_weight() -> None:
    weights = {"a": 0.7, "b": 0.3, "c": 0.0}
    found = Counter(drawn(weights, f"job-{n}") for n in range(2000))
    assert found == Counter(drawn(weights, f"job-{n}") for n in range(2000))
    assert found["a"] / 2000 == pytest.approx(0.7, abs=0.04)
    assert found["c"] == 0
