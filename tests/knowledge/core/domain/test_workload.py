"""How many tokens a job processes."""

from __future__ import annotations

import itertools
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.core.domain import workload
from knowledge.core.domain.types import Workload

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=7)


def _workload(lengths: list[int]) -> Workload:
    pairs = tuple((length, lengths.count(length)) for length in sorted(set(lengths)))
    return Workload(rows=len(lengths), lengths=pairs)


@given(lengths=LENGTHS, batch=st.integers(1, 7), limit=st.integers(1, 300))
def test_padding_is_the_mean_longest_row_over_all_batches(lengths: list[int], batch: int, limit: int) -> None:
    cut = [min(length, limit) for length in lengths]
    expected = mean(max(rows) for rows in itertools.combinations(cut, min(batch, len(cut))))
    assert workload.padded_length(_workload(lengths), limit, batch) == pytest.approx(expected)


def test_a_million_rows_do_not_overflow() -> None:
    data = Workload(rows=1_000_000, lengths=((10, 999_999), (5000, 1)))
    assert workload.padded_length(data, 4096, 1) == pytest.approx(10.004, abs=0.001)


def test_epochs_are_laid_end_to_end() -> None:
    data = Workload(rows=10, lengths=((5, 10),))
    assert workload.steps(data, 4, 2.0, None) == 5
    assert workload.steps(data, 4, None, 7) == 7
    assert workload.steps(data, 64, 1.0, None) == 1


def test_the_recommended_length_keeps_99_percent_whole_and_stays_in_the_context() -> None:
    data = Workload(rows=1000, lengths=((100, 900), (300, 95), (9000, 5)))
    assert workload.recommended_length(data, 4096) == 320
    assert workload.recommended_length(data, 256) == 256
    assert workload.kept_share(data, 320) == pytest.approx(0.995)
    assert workload.kept_tokens(data, 320) == pytest.approx((90_000 + 28_500 + 5 * 320) / 163_500)
    assert workload.kept_tokens(Workload(rows=0, lengths=()), 320) == 1.0
