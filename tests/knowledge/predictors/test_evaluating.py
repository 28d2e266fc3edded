"""`evaluate_predictor` on foreign files.

Every row is predicted and every figure is reported.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import generic
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import PriorPredictor
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.predictors.test_learning import rows

FIGURES = {
    "rows", "validity_rows", "validity_error", "false_ok_rate", "throughput_rows", "throughput_mape",
    "throughput_median_ape", "memory_mae", "memory_mape", "memory_bias", "memory_worst_under",
    "coverage_80", "mean_width_80", "outside_rows", "train_s", "predict_s",
}  # fmt: skip


def evaluated(folder: Path, train: str, test: str, **options: Any) -> tuple[dict[str, Any], str]:
    """(figures, what was said of names that are unknown)."""
    (folder / "train.csv").write_text(train)
    (folder / "test.csv").write_text(test)
    files = {name: [str(folder / f"{name}.csv")] for name in ("train", "test")}
    out, said = folder / "out.json", io.StringIO()
    given = {"json": str(out), "stdout": io.StringIO(), "stderr": said, **options}
    call_command("evaluate_predictor", **files, **given)
    return json.loads(out.read_text()), said.getvalue()


def some(count: int, **changes: Any) -> list[Measurement]:
    """Rows of a valid and fast sort, their configurations changed."""
    found = [row for row in rows(200, seed=7) if row.status == "ok"][:count]
    return [replace(row, config=replace(row.config, **changes)) for row in found]


def test_evaluation_needs_no_database_and_writes_every_figure(tmp_path: Path) -> None:
    figures, _ = evaluated(tmp_path, generic.write(rows(200, seed=1)), generic.write(rows(50, seed=2)))
    assert set(figures) >= FIGURES
    assert all(math.isfinite(figure) for figure in figures.values())
    assert figures["throughput_mape"] < 0.1


def test_rows_whose_model_or_gpu_nobody_catalogued_are_predicted_without_a_database(tmp_path: Path) -> None:
    strange = [*some(3, model_name="acme-8b"), *some(2, gpu_model="ACME 1")]
    figures, said = evaluated(tmp_path, generic.write(rows(20, seed=1)), generic.write(strange))
    assert figures["rows"] == figures["throughput_rows"] == figures["unknown_rows"] == 5
    assert "'acme-8b' is not in the catalogue and was predicted with Qwen/Qwen3-8B's facts" in said
    assert "'ACME 1' is not in the catalogue and was predicted with A100-SXM4-80GB's facts" in said


@pytest.mark.parametrize("status", ["failed", "refused"])
def test_figures_that_no_row_tells_are_null_and_not_missing(tmp_path: Path, status: str) -> None:
    (row,) = some(1)
    failed = replace(row, status=status, tokens_per_second=None, peak_memory_fraction=None)
    figures, _ = evaluated(tmp_path, generic.write(some(5)), generic.write([failed]))
    assert set(figures) >= FIGURES
    assert figures["throughput_rows"] == 0
    assert figures["throughput_mape"] is figures["coverage_80"] is figures["memory_mae"] is None


def test_errors_of_peaks_are_shares_of_what_was_measured() -> None:
    scorer = PriorPredictor(catalogue=CATALOGUE)
    one, other = (replace(row, config=replace(row.config, per_device_batch_size=1)) for row in some(2))
    measured = [_with_peak(one, scorer, 1 / 0.8), _with_peak(other, scorer, 1 / 1.1)]
    found = evaluation.metrics(scorer, measured)
    assert found["memory_mape"] == pytest.approx(0.15)
    assert found["memory_bias"] == pytest.approx(-0.05)
    assert found["memory_worst_under"] == pytest.approx(0.2)


def _with_peak(row: Measurement, scorer: PriorPredictor, factor: float) -> Measurement:
    """The row with a measured peak of so many times the predicted one."""
    (reported,) = scorer.predict([row.config])
    share = reported.peak_memory_bytes.value / CATALOGUE.gpu(row.config.gpu_model).memory_bytes
    assert share * factor < 1
    return replace(row, peak_memory_fraction=share * factor)


def test_no_rows_at_all_are_no_rows_and_no_error(tmp_path: Path) -> None:
    figures, _ = evaluated(tmp_path, generic.write([]), generic.write([]))
    assert set(figures) >= FIGURES
    assert figures["rows"] == figures["validity_rows"] == figures["outside_rows"] == 0


def test_a_handful_of_rows_teaches_as_own_runs_do(tmp_path: Path) -> None:
    unseen = generic.write(rows(50, seed=2))
    alone, _ = evaluated(tmp_path, generic.write([]), unseen)
    taught, _ = evaluated(tmp_path, generic.write(rows(20, seed=1)), unseen)
    assert alone["throughput_mape"] > 0.9
    assert taught["throughput_mape"] < 0.3


def test_lines_of_blanks_end_no_table(tmp_path: Path) -> None:
    text = generic.write(some(3)).replace("\n", "\n  \n") + "\n ,, \n"
    assert evaluated(tmp_path, text, text)[0]["rows"] == 3


@pytest.mark.parametrize(
    ("test", "options", "said"),
    [
        ("x" * 200_000, {}, "is no CSV"),
        ("", {}, "this column is missing"),
        ("", {"json": "/no/such/folder/out.json"}, "name a file in a folder that exists"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line(
    tmp_path: Path, test: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(CommandError, match=said) as raised:
        evaluated(tmp_path, generic.write(some(2)), test, **options)
    assert "\n" not in str(raised.value)
