"""The reason of an effective batch tells how many steps an epoch really is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.types import Inventory
from knowledge.core.domain.workload import steps
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values
from tests.knowledge.conftest import CATALOGUE, CPU, DATA


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (300, "With 8 samples per step, one epoch over 300 rows is 37.5 steps."),
        (8, "With 8 samples per step, one epoch over 8 rows is 1 step."),
        (1, "With 8 samples per step, one epoch over 1 row is 0.12 steps."),
        (80_000, "With 16 samples per step, one epoch over 80,000 rows is 5,000 steps."),
    ],
)
def test_an_epoch_is_told_in_steps(rows: int, told: str) -> None:
    data = replace(DATA, rows=rows)
    request = Request("builtin/tiny-llama", None, {}, data, Inventory(pools=(CPU,)), CATALOGUE)
    assert choose_submit_values(request)["effective_batch_size"].reason == told


def test_epochs_are_laid_end_to_end() -> None:
    assert steps(replace(DATA, rows=300), 8, 3.0, None) == 113  # 3 x 37.5, and not 3 x 38
