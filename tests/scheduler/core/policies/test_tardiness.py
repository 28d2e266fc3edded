"""Total tardiness: the worked sequences, an exact oracle, and the policies."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.ordering.tardiness_rules import TRAINED_MEAN, edd, mdd, mddc, tardiness
from scheduler.core.policies.tardiness import better_of_both
from scheduler.core.types import Start
from tests.scheduler.core.clusters import decide, job, node, option

SIX = np.array([10.0, 11, 10, 10, 11, 10]), np.array([15.0, 11, 13, 11, 12, 11])
FIVE = np.array([4.0, 2, 6, 3, 5]), np.array([5.0, 3, 14, 16, 12])


def least(p: np.ndarray, d: np.ndarray) -> float:
    """The least total tardiness, by dynamic programming over subsets."""

    @cache
    def best(jobs: frozenset[int]) -> float:
        end = sum(p[list(jobs)])
        return min((best(jobs - {last}) + max(0.0, end - d[last]) for last in jobs), default=0.0)

    return best(frozenset(range(len(p))))


def test_the_worked_examples() -> None:
    assert [tardiness(order(*SIX), *SIX) for order in (edd, mdd, mddc)] == [145, 144, 141]
    assert least(*SIX) == 141
    fifo, shortest = range(5), np.argsort(FIVE[0])
    assert [tardiness(order, *FIVE) for order in (fifo, shortest)] == [11, 12]
    assert tardiness(edd(*FIVE), *FIVE) == 8
    assert mdd(*FIVE) == mddc(*FIVE) == [1, 0, 4, 3, 2]
    assert tardiness(mdd(*FIVE), *FIVE) == least(*FIVE) == 7


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 200)), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_sequences_are_whole_and_never_better_than_the_oracle(jobs: list[tuple[int, int]]) -> None:
    p, d = (np.array(column, float) for column in zip(*jobs, strict=True))
    for order in (edd(p, d), mdd(p, d), mddc(p, d)):
        assert sorted(order) == list(range(len(p)))
        assert tardiness(order, p, d) >= least(p, d) - 1e-9
    both = tardiness(better_of_both(p, d, 0.0), p, d)
    assert both == min(tardiness(mdd(p, d), p, d), tardiness(mddc(p, d), p, d))


def plainly(p: np.ndarray, d: np.ndarray, t: float, corrected: bool) -> list[int]:
    """MDD or MDDC as defined: the due dates of all jobs that are left, at each turn."""
    scale = TRAINED_MEAN / p.mean() if corrected else 1.0
    by_duration = sorted(range(len(p)), key=lambda job: p[job]) if corrected else range(len(p))
    p, d, t, left, order = p * scale, d * scale, t * scale, list(by_duration), []
    while left:
        longest, mean = max(p[left]), p[left].mean()

        def due(job: int, t: float = t, longest: float = longest, mean: float = mean) -> float:
            if not corrected:
                return float(max(t + p[job], d[job]))
            ratio = min(p[job] / (t + longest), 1.0) ** 2
            return float(max(1.1 * p[job] + t, d[job]) * (1 + ratio / (1 + ratio)) + p[job] / (t + mean))

        order.append(min(left, key=due))
        left.remove(order[-1])
        t += p[order[-1]]
    return order


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 600)), min_size=1, max_size=30), st.integers(0, 99)
)
@settings(max_examples=60, deadline=None)
def test_orders_are_those_of_the_definition(jobs: list[tuple[int, int]], start: int) -> None:
    p, d = (np.array(column, float) for column in zip(*jobs, strict=True))
    assert mdd(p, d, start) == plainly(p, d, start, corrected=False)
    assert mddc(p, d, start) == plainly(p, d, start, corrected=True)


@pytest.mark.parametrize("spread", [0.0, 1e-3, 1e-2, 0.1, 1.0])
def test_orders_are_those_of_the_definition_where_many_are_due_at_nearly_the_same_time(spread: float) -> None:
    drawn = np.random.default_rng(1)
    p, d = drawn.lognormal(3, 1, 200), 1e4 * (1 + spread * drawn.random(200))
    assert mdd(p, d, 5.0) == plainly(p, d, 5.0, corrected=False)
    assert mddc(p, d, 5.0) == plainly(p, d, 5.0, corrected=True)


def test_a_late_job_is_put_off_when_that_saves_more_of_the_others() -> None:
    """MDD orders two or three jobs best, by exhaustive search.

    Two jobs at a time cannot all be in time.
    """
    for size in (2, 3):
        for pick in combinations(range(5), size):
            p, d = FIVE[0][list(pick)], FIVE[1][list(pick)]
            assert tardiness(mdd(p, d), p, d) == least(p, d)


@pytest.mark.parametrize("policy", ["edd", "mdd", "mddc"])
def test_the_closer_due_time_goes_first_and_jobs_without_one_last(policy: str) -> None:
    jobs = [
        job("none", option(), at=-9),
        job("late", option(), due_at=900.0),
        job("soon", option(), due_at=150.0),
    ]
    plan = decide(policy, jobs, [node("n", 1)])
    assert isinstance(plan["soon"], Start)
    two = decide(policy, jobs, [node("n", 2)])
    assert isinstance(two["late"], Start)
    assert not isinstance(two["none"], Start)
