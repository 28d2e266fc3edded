"""Physics alone, judged on what its weights were not fitted to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.knowledge.physics import ENOUGH, by_model, one_out, rates
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.step_time import StepTime, step_parts
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config

CATALOGUE = shipped_catalogue()

REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = REPOSITORY / "knowledge" / "data" / "executions.csv"
MODELS = ("llama3.2-1b", "llama3.2-3b", "mistral-7b-v0.1", "llama3.1-8b")
BASE = Config(
    model_name=MODELS[0],
    tuning="lora",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=512,
    per_device_batch_size=1,
    precision="bfloat16",
)


def _rows() -> list[Measurement]:
    """As fast as the stated physics says."""
    configs = [
        replace(BASE, model_name=model, number_gpus=gpus, per_device_batch_size=batch)
        for model in MODELS
        for gpus in (1, 2, 4, 8)
        for batch in (1, 2, 4, 8)
    ]
    c = columns(configs, CATALOGUE)
    physics = StepTime()
    physics.weights_ = np.ones(sum(part.shape[1] for part in step_parts(c)))
    return [
        Measurement(config=config, status="ok", source="test", tokens_per_second=float(rate))
        for config, rate in zip(configs, physics.value(c), strict=True)
    ]


def test_what_follows_physics_is_predicted_for_a_model_that_was_left_out() -> None:
    found = rates(_rows(), by_model)
    assert found["rate_rows"] == 64
    assert found["rate_mean"] < 0.001


def test_a_model_twice_as_fast_as_physics_says_is_not_learnt_from_itself() -> None:
    rows = [
        replace(row, tokens_per_second=2 * (row.tokens_per_second or 0))
        if row.config.model_name == MODELS[0]
        else row
        for row in _rows()
    ]
    found = rates(rows, lambda row: str(row.config.model_name == MODELS[0]))
    assert found["rate_rows"] == 16, "48 rows say what the 16 would be; 16 are too few to say it of 48"
    assert found["rate_mean"] == pytest.approx(0.5, abs=0.01)


def test_each_model_is_left_out_whole_and_by_itself() -> None:
    rows = _rows()
    folds = list(one_out(rows, by_model))
    assert len(folds) == len(MODELS)
    for train, test in folds:
        assert len(train) >= ENOUGH
        assert len({rows[row].config.model_name for row in test}) == 1
        assert not {rows[row].config.model_name for row in test} & {
            rows[row].config.model_name for row in train
        }


@pytest.mark.slow
def test_the_script_prints_a_line_a_split_and_writes_its_figures(tmp_path: Path) -> None:
    folder = tmp_path / "llmfinetuningbench"
    folder.mkdir()
    shutil.copy(SHIPPED, folder / "runs.csv")
    out = tmp_path / "out.json"
    command = [
        sys.executable,
        "benchmarks/knowledge/physics.py",
        str(tmp_path),
        "--only",
        "llm",
        "--json",
        str(out),
    ]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    assert set(figures) == {"llmfinetuningbench, models", "llmfinetuningbench, GPUs"}
    assert all(f"| {name} |" in done.stdout for name in figures)
    for found in figures.values():
        assert found["rate_rows"] > found["peak_rows"] > ENOUGH
        assert 0 < found["rate_median"] < found["rate_mean"] < 0.5
        assert 0 < found["peak_median"] < found["peak_mean"] < 0.3
