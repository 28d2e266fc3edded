"""The share of padding, as a training reports it."""

from __future__ import annotations

import pytest

from tests.trainer.runs import Run

pytestmark = pytest.mark.torch


def test_batches_of_one_row_have_no_padding(run: Run) -> None:
    run.params.update(max_steps=3, per_device_batch_size=1)
    run.write().train()
    assert [event["padding"] for event in run.events("step")] == [0.0, 0.0, 0.0]


def test_larger_ones_are_padded_to_their_longest_row(run: Run) -> None:
    run.params.update(max_steps=3)
    run.write().train()
    assert all(0 < event["padding"] < 1 for event in run.events("step"))
    assert (run.path / "output" / "metrics.csv").read_text().splitlines()[0].endswith(",padding")
