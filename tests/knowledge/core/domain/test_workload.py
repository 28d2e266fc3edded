"""How many tokens a job processes."""

from __future__ import annotations

import itertools
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.core.domain import workload
from knowledge.core.domain.types import Workload
from trainer.train.plan import StepPlan

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=7)


def _workload(lengths: list[int]) -> Workload:
    pairs = tuple((length, lengths.count(length)) for length in sorted(set(lengths)))
    return Workload(rows=len(lengths), lengths=pairs)


@given(lengths=LENGTHS, batch=st.integers(1, 7), micro=st.integers(1, 7), limit=st.integers(1, 300))
def test_padding_is_that_of_the_trainers_plan_over_all_batches(
    lengths: list[int], batch: int, micro: int, limit: int
) -> None:
    cut = [min(length, limit) for length in lengths]
    batch = min(batch, len(cut))
    micro = min(micro, batch)
    expected = mean(
        StepPlan(lengths=rows, seed=1, batch=batch, micro=micro, epochs=1.0).tokens(0) / batch
        for rows in itertools.combinations(cut, batch)
    )
    assert workload.padded_length(_workload(lengths), limit, micro, batch) == pytest.approx(expected)


@given(lengths=LENGTHS, epochs=st.integers(1, 5), micro=st.integers(1, 40))
def test_a_step_of_whole_epochs_has_each_row_as_often(lengths: list[int], epochs: int, micro: int) -> None:
    batch = len(lengths) * epochs
    expected = StepPlan(lengths=lengths, seed=1, batch=batch, micro=min(micro, batch), epochs=1.0).tokens(0)
    padded = workload.padded_length(_workload(lengths), 300, micro, batch)
    assert padded == pytest.approx(expected / batch)


def test_a_million_rows_do_not_overflow() -> None:
    data = Workload(rows=1_000_000, lengths=((10, 999_999), (5000, 1)))
    assert workload.padded_length(data, 4096, 1, 1) == pytest.approx(10.004, abs=0.001)


@pytest.mark.parametrize(("micro", "batch"), [(1, 64), (4, 64), (16, 64), (16, 1024)])
def test_very_many_lengths_and_rows_are_close_to_what_the_plan_takes(micro: int, batch: int) -> None:
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(np.log(220), 0.9, 8192).astype(int), 1, 2048).tolist()
    plan = StepPlan(lengths=lengths, seed=1, batch=batch, micro=micro, epochs=10.0)
    expected = plan.tokens_total / plan.steps / batch
    assert workload.padded_length(_workload(lengths), 2048, micro, batch) == pytest.approx(expected, rel=0.01)


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
