"""What is not stated is uncertain: the optimiser's states."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.types import Config, Prediction
from knowledge.core.predict.base import PriorPredictor
from tests.knowledge.conftest import CATALOGUE

NARROW = Config(
    model_name="meta-llama/Llama-3.1-8B",
    method="full",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=512,
    per_device_batch_size=1,
    precision="bfloat16",
    gradient_checkpointing=True,
    optimizer_state="adamw-bf16",
)
WIDE = replace(NARROW, optimizer_state="adamw-fp32")
SILENT = replace(NARROW, optimizer_state=None)


def predicted(config: Config) -> Prediction:
    return PriorPredictor(catalogue=CATALOGUE).predict([config])[0]


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_an_unstated_optimiser_may_be_either(precision: str) -> None:
    narrow, wide, silent = (predicted(replace(x, precision=precision)) for x in (NARROW, WIDE, SILENT))
    told = silent.peak_memory_bytes
    assert told.low is not None
    assert told.high is not None
    assert told.low <= min(narrow.peak_memory_bytes.value, wide.peak_memory_bytes.value)
    assert told.high >= max(narrow.peak_memory_bytes.value, wide.peak_memory_bytes.value)
    assert wide.p_valid <= silent.p_valid <= max(narrow.p_valid, wide.p_valid)


def test_one_that_fits_by_one_optimiser_alone_is_neither_promised_nor_ruled_out() -> None:
    assert predicted(NARROW).p_valid > 0.9
    assert predicted(WIDE).p_valid < 0.01
    assert 0.4 < predicted(SILENT).p_valid < 0.6


def test_an_adapter_hardly_depends_on_it() -> None:
    lora = predicted(replace(SILENT, method="lora", lora_r=16))
    stated = predicted(replace(WIDE, method="lora", lora_r=16))
    assert lora.p_valid == pytest.approx(stated.p_valid, abs=0.01)
    assert lora.peak_memory_bytes.high == pytest.approx(stated.peak_memory_bytes.high, rel=0.05)
