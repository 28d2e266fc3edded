"""The floor under errors of peaks: what runs of one configuration differ by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.knowledge import accuracy
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config
from knowledge.core.predict.base import PriorPredictor

CONFIG = Config(
    model_name="meta-llama/Llama-3.2-1B",
    tuning="lora",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=1024,
    per_device_batch_size=1,
    precision="bfloat16",
)


def run(share: float | None, **changed: object) -> Measurement:
    config = replace(CONFIG, **changed)  # type: ignore[arg-type]
    return Measurement(config=config, status="ok", source="lfb", peak_memory_fraction=share)


def test_each_run_is_predicted_by_the_others_of_its_configuration() -> None:
    rows = [run(0.2, software="1"), run(0.4, software="2"), run(0.3), run(None), run(0.5, lora_r=8)]
    found = accuracy.of_others(rows)
    assert found[:3] == pytest.approx([0.35, 0.25, 0.3])
    assert np.isnan(found[3:]).all()


def test_the_floor_is_told_beside_the_error_on_the_same_rows() -> None:
    rows = [run(0.2), run(0.4), run(0.5, lora_r=8)]
    prior = PriorPredictor(catalogue=accuracy.CATALOGUE)
    found = accuracy.floor(rows, accuracy.of_others(rows), prior)
    peak = prior.predict([CONFIG])[0].peak_memory_bytes.value / (80 << 30)
    assert found["floor_rows"] == 2
    assert found["floor_mape"] == pytest.approx((1 + 0.5) / 2)
    assert found["floor_worst_under"] == pytest.approx(0.5)
    assert found["floored_mape"] == pytest.approx((abs(peak / 0.2 - 1) + abs(peak / 0.4 - 1)) / 2)
    assert accuracy.floor(rows[2:], accuracy.of_others(rows[2:]), prior) == {"floor_rows": 0}
