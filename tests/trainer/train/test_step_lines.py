"""Lines of progress: one a step in short trainings, one for several steps in long ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.train.events import Journal, RunFigures, metrics_csv


def lines(path: Path, norms: list[float], total_steps: int) -> list[dict[str, Any]]:
    """The lines of a training with steps of 0.2 s and these gradient norms."""
    journal, measured = Journal(path / "events.jsonl"), RunFigures(total_steps=total_steps)
    for number, norm in enumerate(norms, 1):
        measured.step = number
        values = {"loss": float(number), "learning_rate": 1 / number, "gradient_norm": norm}
        journal.step(measured, values, tokens=100, row_tokens=80, seconds=0.2)
    assert metrics_csv(journal.rows).count("\n") == len(journal.rows) + 1
    return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]


def test_a_line_of_several_steps_has_the_mean_of_norms_and_losses_and_the_last_rate(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, [1.0, 2.0, 6.0], total_steps=1000)
    assert (line["step"], line["loss"], line["gradient_norm"], line["learning_rate"]) == (3, 2.0, 3.0, 1 / 3)
    assert (line["tokens_per_s"], line["row_tokens_per_s"]) == pytest.approx((500.0, 400.0))


def test_a_step_that_float16_skipped_has_no_norm(tmp_path: Path) -> None:
    skipped, after = lines(tmp_path, [float("inf"), 2.0], total_steps=10)
    assert "gradient_norm" not in skipped
    assert after["gradient_norm"] == 2.0
