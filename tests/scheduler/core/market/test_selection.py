"""Weights that learn: the worked example, the bound, and draws that stay the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from scheduler.core.market.selection import Selection, drawn, learning_rate, regret_bound, scaled

UTILITIES = [(0.6, 0.4, 0.2), (0.7, 0.5, 0.1), (0.5, 0.6, 0.3), (0.8, 0.4, 0.2)]
NAMES = ("a", "b", "c")


def learnt(rate: float | None) -> Selection:
    selection = Selection.among(NAMES, rate)
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
    assert list(learnt(None).weights.values()) == pytest.approx([0.6724, 0.2658, 0.0618], abs=5e-5)


def test_regret_is_within_the_bound_whatever_comes() -> None:
    rng = random.Random(18)
    for _ in range(50):
        jobs, names = rng.randint(1, 80), [str(n) for n in range(rng.randint(2, 12))]
        selection = Selection.among(names, learning_rate(jobs, len(names)))
        favoured = rng.choice(names)
        for _ in range(jobs):
            favoured = rng.choice(names) if rng.random() < 0.05 else favoured
            selection = selection.after({n: float(n == favoured) or rng.random() / 2 for n in names})
        assert selection.regret <= regret_bound(jobs, len(names)) + 1e-9


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
