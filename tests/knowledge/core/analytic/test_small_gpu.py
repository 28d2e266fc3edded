"""LoRA and QLoRA of transformers and peft on one small GPU, a T4."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from knowledge.core.analytic import activations, stack
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.loss.logits import blocks_left, of_logits
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

KNOWN = Config(
    model_name="openai-community/gpt2-medium",
    tuning="lora",
    gpu_model="T4",
    number_gpus=1,
    tokens_per_sample=512,
    per_device_batch_size=2,
    precision="float16",
    lora_r=16,
    target_modules="query-value",
    gradient_checkpointing=False,
    software="transformers",
)
QUANTIZED = replace(
    KNOWN, tuning="qlora", quantization="bnb-4bit", unquantized_float32=False, target_modules="all-linear"
)
ALONE = replace(  # one sample, without a mask
    KNOWN,
    model_name="tinyllama-1.1b",
    tokens_per_sample=1024,
    per_device_batch_size=1,
    software="transformers 4.57.1 peft 0.17.1",
)
# Bytes of a token that `benchmarks/trainer/hf_steps.py` sees kept by a layer, the mask of padded rows aside.
KEPT = {
    KNOWN: 78_080,
    replace(KNOWN, target_modules="all-linear"): 90_848,
    replace(KNOWN, flash_attention=False): 133_312,
    QUANTIZED: 96_992,
    replace(KNOWN, model_name="facebook/opt-1.3b"): 61_936,
    replace(QUANTIZED, model_name="facebook/opt-1.3b"): 103_920,
    replace(KNOWN, model_name="EleutherAI/pythia-410m"): 30_976,
    replace(KNOWN, model_name="microsoft/phi-2"): 184_860,
    replace(QUANTIZED, model_name="microsoft/phi-2"): 237_308,
    replace(KNOWN, model_name="google/gemma-2b"): 132_416,
    replace(QUANTIZED, model_name="google/gemma-2b", unquantized_float32=True): 285_032,
    ALONE: 214_288,
    replace(ALONE, target_modules="attention"): 222_744,
    replace(
        ALONE,
        tuning="qlora",
        quantization="bnb-4bit",
        unquantized_float32=True,
        target_modules="all-linear",
    ): 276_808,
}


def of_layer(config: Config) -> float:
    return float(activations.of_layer(columns([config], CATALOGUE))[0])


@pytest.mark.parametrize("config", KEPT, ids=lambda config: f"{config.model_name} {config.tuning}")
def test_layers_keep_what_autocast_and_dropout_make_them_keep(config: Config) -> None:
    assert of_layer(config) == pytest.approx(KEPT[config], rel=0.03)


def test_layer_norms_are_in_float32_wherever_autocast_is_and_not_where_weights_are_cast() -> None:
    """Two norms with a copy of 4 bytes instead of the 2 of the stream, and the powers of GPT-2's GELU."""
    cast = replace(KNOWN, optimizer_state="adamw-bf16")
    assert [stack.casts_norms(config) for config in (KNOWN, cast)] == [True, False]
    assert not stack.casts_norms(replace(KNOWN, precision="float32"))
    extra = of_layer(replace(KNOWN, model_name="EleutherAI/pythia-410m"))
    extra -= of_layer(replace(cast, model_name="EleutherAI/pythia-410m"))
    assert extra == 2 * 4 * 1024 - 2 * 1024


def test_no_kernel_of_a_t4_shares_keys_whatever_attention_is_called() -> None:
    """TinyLlama has 32 heads and keys for 4; of Gemma's one key transformers makes no copies."""
    llama = replace(KNOWN, model_name="tinyllama-1.1b")
    for flash in (None, True):
        t4, a10g = (of_layer(replace(llama, gpu_model=gpu, flash_attention=flash)) for gpu in ("T4", "A10G"))
        assert t4 - a10g == 2 * 2 * (2048 - 256)
    gemma = replace(KNOWN, model_name="google/gemma-2b")
    assert of_layer(gemma) == of_layer(replace(gemma, gpu_model="A10G"))


def test_logits_come_into_blocks_of_scores_that_are_large_enough() -> None:
    """OPT 1.3B, 32 heads, 50,272 words: 2 x 256 scores make no room for a token's logits, 2,048 do."""
    quantized = replace(
        QUANTIZED,
        model_name="facebook/opt-1.3b",
        unquantized_float32=True,
        flash_attention=False,
        gradient_checkpointing=True,
    )
    room = {}
    for batch, tokens in ((8, 256), (1, 2048)):
        c = columns([replace(quantized, per_device_batch_size=batch, tokens_per_sample=tokens)], CATALOGUE)
        going, again, found = 2.0e9, 1.5e9, of_logits(c)
        cached = float(blocks_left(c, np.array([going]), np.array([again]), found)[0])
        room[tokens] = (going + float(found[0]) - max(again, float(found[0])) - cached) / 2048
    words, scores = 50_272, 32 * 2048
    assert room[256] == 0
    copy = 2 * 2048 * words / 2048  # of the float32 head, in 16 bits
    assert room[2048] == pytest.approx(copy + 2 * words + 4 * words - 4 * scores)


@pytest.mark.parametrize(("kind", "heads", "bytes_a_score"), [("gpt2", 16, 6.0), ("llama", 32, 6.0)])
def test_softmax_going_back_has_what_it_gave_and_two_gradients(
    kind: str, heads: int, bytes_a_score: float
) -> None:
    name = {"gpt2": "openai-community/gpt2-medium", "llama": "tinyllama-1.1b"}[kind]
    c = columns([replace(KNOWN, model_name=name, flash_attention=False)], CATALOGUE)
    assert float(activations.of_scores(c)[0]) == bytes_a_score * heads * 512


@pytest.mark.parametrize(
    ("other", "plainly"),
    [
        ({}, True),
        ({"software": "transformers 4.53.3"}, False),
        ({"software": "transformers"}, False),
        ({"software": None, **OUR_TRAINER}, False),
        ({"per_device_batch_size": 2}, False),  # padded, so that there is a mask
        ({"gpu_model": "A10G"}, False),
        ({"flash_attention": False}, False),
        ({"model_name": "EleutherAI/pythia-410m"}, False),  # as many keys as queries
    ],
)
def test_newer_transformers_attend_plainly_where_no_kernel_shares_keys(
    other: dict[str, Any], plainly: bool
) -> None:
    """PyTorch's efficient kernel takes no keys that heads share, and a T4 has no other (`sdp_utils.cpp`)."""
    assert stack.attends_plainly(replace(ALONE, **other), CATALOGUE) == plainly


def test_our_trainer_is_counted_as_before() -> None:
    ours = replace(KNOWN, software=None, **OUR_TRAINER)
    assert stack.casts_norms(ours)
    assert stack.lifts(replace(QUANTIZED, **OUR_TRAINER), CATALOGUE)
