"""Attention holds scores where it is eager, as it is in some families, and masks of windows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

OURS = Config(
    model_name="google/gemma-2-2b",
    tuning="lora",
    gpu_model="H100-SXM5-80GB",
    number_gpus=1,
    tokens_per_sample=2048,
    per_device_batch_size=2,
    precision="bfloat16",
    lora_r=16,
    gradient_checkpointing=False,
    **OUR_TRAINER,
)


def activations(config: Config) -> float:
    """Bytes of one GPU."""
    return float(cost_model.memory(columns([config], CATALOGUE)).activations[0])


@pytest.mark.parametrize("model", ["google/gemma-2-2b", "openai-community/gpt2-xl"])
@pytest.mark.parametrize("software", [None, "LitGPT 0.5.7"])
def test_a_family_without_fused_attention_holds_its_scores_unless_another_kind_is_stated(
    model: str, software: str | None
) -> None:
    config = replace(OURS, model_name=model, software=software)
    fused, eager = (activations(replace(config, flash_attention=flash)) for flash in (True, False))
    alone = software is None and "gpt2" not in model
    assert activations(config) == (eager if alone else fused)


@pytest.mark.parametrize("software", [None, "LitGPT 0.5.7"])
def test_one_key_that_no_kernel_takes_leaves_plain_products(software: str | None) -> None:
    """Falcon 7B, 71 heads of 64: queries, keys, values and scores in float32, without copies in 16 bits."""
    config = replace(OURS, model_name="tiiuae/falcon-7b", software=software)
    fused, eager = (activations(replace(config, flash_attention=flash)) for flash in (True, False))
    if software is not None:
        assert activations(config) == fused
        return
    wide, narrow = 12 * 71 * 64 + 4 * 71 * 2048, 3 * 2 * 71 * 64 + 6 * 71 * 2048
    assert eager - activations(config) == pytest.approx(32 * 2 * 2048 * (narrow - wide), rel=0.05)


def test_scores_are_those_of_each_layer_head_and_pair_of_tokens() -> None:
    """Gemma 2 2B: probabilities in float32, a copy and what its tanh gives in 16 bits; 26 layers, 8 heads."""
    extra = activations(OURS) - activations(replace(OURS, flash_attention=True))
    assert extra == pytest.approx(26 * 8 * 2 * 2048**2 * (4 + 2 + 2), rel=0.15)


def test_windows_shorter_than_a_sample_are_masks_by_which_heads_share_no_keys() -> None:
    """Mistral 7B v0.1, 4,096 tokens: beside one without windows, of the same sizes but for its words."""
    known, sizes = replace(OURS, model_name="mistralai/Mistral-7B-v0.1"), {512: 0.0, 4095: 0.0, 8192: 1.0}
    for tokens, masked in sizes.items():
        windowed = replace(known, tokens_per_sample=tokens)
        extra = activations(windowed) - activations(replace(windowed, model_name="mistral-7b-v0.2"))
        of_layer = 2 * tokens * (2 * tokens + 2 * 2 * (4096 - 1024))
        assert extra == pytest.approx(masked * 32 * of_layer, rel=0.05)
    assert activations(replace(known, tokens_per_sample=8192, flash_attention=True)) == pytest.approx(
        activations(replace(known, tokens_per_sample=8192, model_name="mistral-7b-v0.2"))
    )
