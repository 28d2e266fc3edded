from __future__ import annotations

import random
from collections import Counter

import pytest

from trainer.train.plan import StepPlan


def plan(**changes: object) -> StepPlan:
    values = {"lengths": [10, 20, 30, 40, 50, 60, 70], "seed": 1, "batch": 4, "micro": 2, "epochs": 2.0}
    return StepPlan(**{**values, **changes})  # type: ignore[arg-type]


def test_every_row_is_read_once_in_each_epoch():
    whole = plan(batch=7)
    assert whole.steps == 2
    assert sorted(whole.rows(0)) == sorted(whole.rows(1)) == list(range(7))
    assert whole.rows(0) != whole.rows(1)


def test_a_step_reads_the_same_rows_whatever_was_asked_before():
    fresh, used = plan(epochs=9), plan(epochs=9)
    for step in range(10):
        used.rows(step)
    assert fresh.rows(11) == used.rows(11)
    assert plan(seed=2).rows(0) != plan(seed=1).rows(0)


def test_the_last_batch_is_filled_from_the_next_epoch():
    assert plan(epochs=1.0).steps == 2
    counts = Counter(row for step in range(2) for row in plan(epochs=1.0).rows(step))
    assert sum(counts.values()) == 8
    assert set(counts) == set(range(7))


def test_a_fraction_of_an_epoch_and_a_number_of_steps():
    assert plan(epochs=0.5).steps == 1
    assert plan(epochs=0.001).steps == 1
    assert plan(max_steps=5).steps == 5


def test_more_rows_in_a_batch_than_in_the_data():
    assert Counter(plan(batch=14).rows(0)) == dict.fromkeys(range(7), 2)


@pytest.mark.parametrize("size", [1, 2])
def test_processes_share_the_micro_batches_of_a_step(size: int):
    shared = [chunk for rank in range(size) for chunk in plan().micro_batches(1, rank, size)]
    assert sorted(shared) == sorted(plan().micro_batches(1))
    assert all(len(chunk) == 2 for chunk in shared)


def test_tokens_count_the_padding_to_the_longest_row_of_each_micro_batch():
    even = plan(lengths=[10] * 7)
    assert even.tokens(0) == 40
    assert even.tokens_total == 40 * even.steps
    uneven = plan(lengths=[10, 100], batch=2, epochs=1.0)
    assert uneven.tokens_total == 200


def test_rows_of_a_step_are_computed_with_those_of_like_length():
    whole = plan(batch=6, micro=2, lengths=[10, 70, 20, 60, 30, 50, 40], max_steps=1)
    read = whole.rows(0)
    longest_first = sorted((whole.lengths[row] for row in read), reverse=True)
    chunks = [[whole.lengths[row] for row in chunk] for chunk in whole.micro_batches(0)]
    assert [length for chunk in chunks for length in chunk] == longest_first
    assert whole.tokens(0) == 2 * sum(longest_first[::2])
    assert whole.row_tokens(0) == sum(longest_first)


@pytest.mark.parametrize("seed", range(40))
def test_sorted_rows_never_take_more_tokens(seed: int):
    drawn = random.Random(seed)
    lengths = [drawn.randint(1, 300) for _ in range(drawn.randint(1, 40))]
    micro, parts = drawn.randint(1, 5), drawn.randint(1, 6)
    whole = plan(lengths=lengths, seed=seed, batch=micro * parts, micro=micro, max_steps=3)
    for step in range(3):
        rows = whole.rows(step)
        chunks = [rows[start : start + micro] for start in range(0, len(rows), micro)]
        as_read = sum(len(chunk) * max(lengths[row] for row in chunk) for chunk in chunks)
        assert whole.row_tokens(step) <= whole.tokens(step) <= as_read


def test_the_largest_micro_batch_of_all_is_known_before_the_first_step():
    varied = plan(lengths=[10] * 30 + [90] + [10] * 9, batch=4, micro=2, epochs=1.0)
    at = next(step for step in range(varied.steps) if 30 in varied.rows(step))
    first = 0 if at else 1
    assert varied.largest_after(first) == varied.micro_batches(at)[0]
    assert varied.largest_after(at) == []
    assert plan(lengths=[32] * 6).largest_after(0) == []


def test_epoch_ends():
    ends = [step for step in range(7) if plan(epochs=4.0).ends_epoch(step)]
    assert ends == [1, 3, 5, 6]


def test_the_sizes_of_micro_batches_are_counted():
    whole = plan(lengths=[32] * 6, epochs=100.0)
    assert (whole.sizes, whole.parts) == (1, 300)
    assert plan(lengths=[32] * 6, batch=3, max_steps=1).sizes == 2  # of two rows, and of one
    varied = plan(lengths=[*range(8, 72)], batch=4, micro=1, max_steps=40)
    seen = {varied.lengths[row] for step in range(40) for row in varied.rows(step)}
    assert (varied.sizes, varied.parts) == (len(seen), 160)
