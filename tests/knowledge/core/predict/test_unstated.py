"""Settings that are not stated are uncertain: optimiser, attention, adapters and widths."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config, Prediction
from knowledge.core.predict.base import PriorPredictor
from tests.knowledge.conftest import CATALOGUE

NARROW = Config(
    model_name="meta-llama/Llama-3.1-8B",
    tuning="full",
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
    reported = silent.peak_memory_bytes
    assert reported.low is not None
    assert reported.high is not None
    assert reported.low <= min(narrow.peak_memory_bytes.value, wide.peak_memory_bytes.value)
    assert reported.high >= max(narrow.peak_memory_bytes.value, wide.peak_memory_bytes.value)
    assert wide.p_valid <= silent.p_valid <= max(narrow.p_valid, wide.p_valid)


def test_one_that_fits_by_one_optimiser_alone_is_neither_promised_nor_ruled_out() -> None:
    narrow, wide, silent = (
        replace(x, model_name="mistralai/Mistral-7B-v0.1") for x in (NARROW, WIDE, SILENT)
    )
    assert predicted(narrow).p_valid > 0.9
    assert predicted(wide).p_valid < 0.01
    assert 0.4 < predicted(silent).p_valid < 0.6


def test_an_adapter_hardly_depends_on_it() -> None:
    lora = predicted(replace(SILENT, tuning="lora", lora_r=16))
    stated = predicted(replace(WIDE, tuning="lora", lora_r=16))
    assert lora.p_valid == pytest.approx(stated.p_valid, abs=0.01)
    assert lora.peak_memory_bytes.high == pytest.approx(stated.peak_memory_bytes.high, rel=0.05)


STATED = replace(
    NARROW,
    tuning="qlora",
    lora_r=16,
    tokens_per_sample=4096,
    flash_attention=True,
    target_modules="all-linear",
    unquantized_float32=False,
)
USUAL: dict[str, tuple[Any, Any]] = {
    "optimizer_state": ("adamw-fp32", "adamw-bf16"),
    "flash_attention": (True, False),
    "target_modules": ("query-value", "all-linear"),
    "unquantized_float32": (True, False),
}


def holds(outer: Prediction, inner: Prediction) -> bool:
    """Tell whether one interval of the peak lies within another."""
    of_outer, of_inner = outer.peak_memory_bytes, inner.peak_memory_bytes
    assert of_outer.low
    assert of_outer.high
    assert of_inner.low
    assert of_inner.high
    return of_outer.low <= of_inner.low * 1.000001 and of_inner.high <= of_outer.high * 1.000001


@pytest.mark.parametrize("name", USUAL)
def test_an_unstated_setting_has_both_usual_peaks_and_the_mean_probability(name: str) -> None:
    long = replace(STATED, gradient_checkpointing=False, tokens_per_sample=3000)
    silent = predicted(replace(long, **{name: None}))
    usual = [predicted(replace(long, **{name: value})) for value in USUAL[name]]
    assert all(holds(silent, one) for one in usual)
    assert not holds(usual[0], usual[1]) or not holds(usual[1], usual[0])  # the setting changes the peak
    assert silent.p_valid == pytest.approx(sum(one.p_valid for one in usual) / 2)


@given(
    known=st.fixed_dictionaries({name: st.sampled_from((*values, None)) for name, values in USUAL.items()}),
    forgotten=st.sampled_from(list(USUAL)),
    tuning=st.sampled_from(["full", "lora", "qlora"]),
    tokens=st.sampled_from([512, 2048, 8192]),
    checkpointing=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_stating_less_never_narrows_the_interval(
    known: dict[str, Any], forgotten: str, tuning: str, tokens: int, checkpointing: bool
) -> None:
    sizes: dict[str, Any] = {"tokens_per_sample": tokens, "gradient_checkpointing": checkpointing}
    more = replace(STATED, tuning=tuning, lora_r=None if tuning == "full" else 16, **sizes, **known)
    assert holds(predicted(replace(more, **{forgotten: None})), predicted(more))


@pytest.mark.parametrize("tuning", ["full", "lora", "qlora"])
def test_our_trainer_leaves_nothing_open(tuning: str) -> None:
    sizes: dict[str, Any] = {"tuning": tuning, "lora_r": None if tuning == "full" else 16}
    ours = replace(NARROW, **OUR_TRAINER, **sizes)
    earlier = replace(ours, target_modules=None, unquantized_float32=None)  # runs of older versions
    width = predicted(replace(STATED, **sizes)).peak_memory_bytes
    for reported in (predicted(ours).peak_memory_bytes, predicted(earlier).peak_memory_bytes):
        assert reported.low is not None
        assert reported.high is not None
        assert width.low is not None
        assert width.high is not None
        assert reported.high / reported.low == pytest.approx(width.high / width.low)  # as where all is stated
