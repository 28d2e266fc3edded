"""LoRA and QLoRA of transformers and peft on one small GPU, a T4."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import activations, stack
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

KNOWN = Config(
    model_name="openai-community/gpt2-medium",
    method="lora",
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
    KNOWN, method="qlora", quantization="bnb-4bit", unquantized_float32=False, target_modules="all-linear"
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
}


def of_layer(config: Config) -> float:
    return float(activations.of_layer(columns([config], CATALOGUE))[0])


@pytest.mark.parametrize("config", KEPT, ids=lambda config: f"{config.model_name} {config.method}")
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


def test_our_trainer_is_counted_as_before() -> None:
    ours = replace(KNOWN, software=None, **OUR_TRAINER)
    assert stack.casts_norms(ours)
    assert stack.lifts(replace(QUANTIZED, **OUR_TRAINER), CATALOGUE)
