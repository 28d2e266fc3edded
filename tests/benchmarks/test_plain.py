"""The baseline that every figure of benchmarks/knowledge/accuracy.py stands beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.knowledge import plain
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config

CONFIG = Config(
    model_name="llama3.2-1b",
    tuning="lora",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=512,
    per_device_batch_size=1,
    precision="bfloat16",
)
BATCHES = (1, 2, 4, 8, 16, 32)


def _run(gpus: int, batch: int, **outcome: object) -> Measurement:
    config = replace(CONFIG, number_gpus=gpus, per_device_batch_size=batch)
    row = Measurement(config=config, status="ok", source="test", tokens_per_second=1000.0 * gpus)
    return replace(row, **outcome)  # type: ignore[arg-type]


RUNS = [_run(gpus, batch) for gpus in (1, 2, 4, 8) for batch in BATCHES] * 2


def test_the_rate_is_learnt_for_each_gpu() -> None:
    found = plain.figures(RUNS, [_run(16, 4)])
    assert found["plain_mape"] == pytest.approx(0.0, abs=1e-6)


def test_validity_is_judged_on_what_started_alone_and_only_where_failures_are_known() -> None:
    fails = [_run(1, 32, status="oom", tokens_per_second=None)] * 24
    refused = _run(1, 32, status="refused", tokens_per_second=None)
    assert "plain_validity" not in plain.figures(RUNS, [_run(1, 1)])
    assert plain.figures(RUNS + fails, [_run(1, 1), fails[0], refused])["plain_judged"] == 2


def test_peaks_of_runs_that_nobody_learns_from_do_not_count() -> None:
    peaks = [replace(run, peak_memory_fraction=0.5) for run in RUNS]
    found = plain.figures(peaks, [peaks[0], replace(peaks[1], learn=False)])
    assert found["plain_memory"] == pytest.approx(0.0, abs=1e-6)
    assert found["plain_peaks"] == 1
