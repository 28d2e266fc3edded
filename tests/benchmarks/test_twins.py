"""Systems that are equal in every column predict each other."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.knowledge.twins import by_others, submitter, system, twin
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config


def run(origin: str, rate: float, gpus: int = 8) -> Measurement:
    config = Config(
        model_name="meta-llama/Llama-2-70b-hf",
        tuning="lora",
        gpu_model="H100-SXM5-80GB",
        number_gpus=gpus,
        tokens_per_sample=8192,
        per_device_batch_size=1,
    )
    return Measurement(config=config, status="ok", source="mlperf", origin=origin, tokens_per_second=rate)


RUNS = [run("A/one/1", 100.0), run("A/one/2", 110.0), run("A/two/1", 50.0), run("B/three/1", 80.0)]
ALONE = run("C/four/1", 300.0, gpus=16)


def test_twins_of_other_submitters_predict_a_run_and_those_of_its_own_do_not() -> None:
    errors = by_others([*RUNS, ALONE], twin, submitter)
    assert errors[:4] == pytest.approx([0.2, 30 / 110, 0.6, 0.25])
    assert np.isnan(errors[4])


def test_what_runs_of_one_system_differ_by_is_chance() -> None:
    errors = by_others(RUNS, system, lambda row: row.origin)
    assert errors[:2] == pytest.approx([0.1, 10 / 110])
    assert np.isnan(errors[2:]).all()
