"""Bytes of a token that PyTorch allocated, as fms-acceleration published them.

`mem_peak_torch_mem_alloc_in_bytes` of runs that differ by their batch alone: Mistral 7B and Llama 2 70B, one
GPU or two that share each, whose logits or whose first layer in the backward pass is the most.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import activations, cost_model, stack
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.analytic.loss.logits import of_fragments, of_logits
from knowledge.core.data.sources import registry
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

ALONE = Config(
    model_name="mistralai/Mistral-7B-v0.1",
    tuning="gptq-lora",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=4096,
    per_device_batch_size=8,
    gradient_accumulation_steps=1,
    precision="float16",
    quantization="gptq-4bit",
    lora_r=16,
    target_modules="attention",
    flash_attention=True,
    gradient_checkpointing=True,
    software="fms-acceleration 2024-09-16",
)
SHARED = replace(ALONE, number_gpus=2, sharding="fsdp")
SANTACODER = "bigcode/gpt_bigcode-santacoder"
LIGER = {"fast_kernels": True, "chunked_loss": True}
LLAMA = replace(SHARED, model_name="NousResearch/Llama-2-70b-hf")


def table(*configs: Config) -> ConfigTable:
    return columns(list(configs), CATALOGUE)


@pytest.mark.parametrize(
    ("config", "allocated", "near"),
    [
        (replace(ALONE, **LIGER), 532_600, 0.001),
        (SHARED, 811_300, 0.011),
        (replace(SHARED, **LIGER), 778_400, 0.01),
        (LLAMA, 3_166_600, 0.01),
        (replace(LLAMA, **LIGER), 3_101_000, 0.01),
    ],
)
def test_another_token_takes_what_pytorch_allocated(config: Config, allocated: float, near: float) -> None:
    c = table(config, replace(config, per_device_batch_size=16))
    stated = cost_model.memory(c)
    held = stated.activations + stated.logits
    assert (held[1] - held[0]) / (8 * 4096) == pytest.approx(allocated, rel=near)


def test_scales_of_4_bit_weights_are_whole_on_each_gpu() -> None:
    """Of Llama 2 70B, 1.02 GiB; GPTQ's are parameters, and shared."""
    of_gptq = replace(LLAMA, unquantized_float32=False)
    of_bitsandbytes = replace(of_gptq, tuning="qlora", quantization="bnb-4bit")
    alone = replace(of_bitsandbytes, number_gpus=1, sharding="none")
    shared, whole, gptq = cost_model.memory(table(of_bitsandbytes, alone, of_gptq)).weights / 2**30
    assert shared == pytest.approx(whole / 2 + 0.51, abs=0.01)
    assert gptq == pytest.approx(whole / 2)


def test_frozen_layers_that_gpus_share_hold_gradients_of_their_inputs() -> None:
    """Two thirds of what a token takes more than on one GPU are those of 32 layers."""
    several = table(SHARED, replace(SHARED, software="fms-hf-tuning 3.1.0"), ALONE)
    assert several.held_inputs.tolist() == [True, False, False]
    assert not stack.holds_inputs(replace(SHARED, tuning="full", quantization="none"))
    assert not stack.holds_inputs(replace(SHARED, gradient_checkpointing=False))


def test_dropout_keeps_a_mask_and_what_it_leaves_of_each_adapter_s_input() -> None:
    c = table(ALONE, replace(ALONE, software=None))
    hidden, repeats = 4096, 2 * 2 * (4096 - 1024)
    dropped = 4 * hidden + 2 * 3 * hidden  # the stream's three readers share their input without it
    with_it, without = activations.of_layer(c)
    assert with_it - without == dropped + repeats
    going = activations.in_forward(c, activations.of_layer(c))
    assert going[0] == going[1]


def test_first_campaigns_dropped_nothing() -> None:
    days = ("2024-06-07", "2024-07-15")
    dated = [replace(ALONE, software=f"fms-acceleration {day}") for day in days]
    several = [*dated, replace(ALONE, software="fms-acceleration"), replace(ALONE, software="2.4.0")]
    assert [stack.drops_out(config) for config in several] == [False, True, True, True]


def test_campaigns_with_a_newer_transformers_copy_no_keys_of_mistral() -> None:
    newer = replace(ALONE, software="fms-acceleration 2025-02-06")
    assert table(ALONE, newer).repeated_flash.tolist() == [True, False]


def test_going_forward_a_layer_holds_as_much_whether_all_weights_learn_or_adapters() -> None:
    """Of one token, what needs no gradient is held then; a checkpointed layer keeps its input alone."""
    plain = replace(ALONE, tuning="lora", quantization="none", optimizer_state="adamw-bf16", software=None)
    c = table(plain, replace(plain, tuning="full"))
    layer = activations.of_layer(c)
    assert layer[0] < layer[1]
    going = activations.in_forward(c, layer)
    assert going[1] == pytest.approx(going[0], rel=0.01)


def test_fused_kernels_keep_inputs_of_norms_as_they_are() -> None:
    plain, fused = activations.of_layer(table(ALONE, replace(ALONE, fast_kernels=True)))
    assert plain - fused == 2 * 4 * 4096 - 2 * 4096


@pytest.mark.parametrize(
    ("config", "measured_gib"), [(replace(ALONE, **LIGER), 23.15), (replace(SHARED, **LIGER), 34.07)]
)
def test_where_a_loss_comes_in_chunks_fragments_stay_between_what_is_kept(
    config: Config, measured_gib: float
) -> None:
    """Of the second PyTorch allocated 26.50 GiB: FSDP's streams have blocks of their own besides."""
    c = table(config, replace(config, chunked_loss=None), replace(config, gradient_checkpointing=False))
    stated = cost_model.memory(c)
    assert stated.cached[0] == pytest.approx(of_fragments(c, stated.activations)[0])
    assert stated.cached[1] > of_fragments(c, stated.activations)[1]
    assert of_fragments(c, stated.activations)[2] == 0
    assert 0.88 * measured_gib < stated.total[0] / 2**30 < measured_gib


@pytest.mark.parametrize(("batch", "bytes_a_logit"), [(1, 10), (2, 14)])
def test_a_loss_that_overwrites_logits_saves_a_block_of_a_single_sample(
    batch: int, bytes_a_logit: int
) -> None:
    fused = replace(ALONE, fast_kernels=True, per_device_batch_size=batch)
    logits = of_logits(table(fused))
    assert logits / (batch * 4096 * 32_000) == pytest.approx(bytes_a_logit)


HEADER = (
    "gpu_model,framework_config,model_name_or_path,num_gpus,per_device_train_batch_size,is_valid,"
    "train_tokens_per_second"
)


def imported(kernels: str, model: str, gpus: int = 1) -> Config:
    """A run of the benchmark's table."""
    line = f"NVIDIA-A100-SXM4-80GB,{kernels},{model},{gpus},4,0,"
    return registry.parse(f"{HEADER}\n{line}\n", CATALOGUE)[0].config


def test_trl_leaves_4_bit_weights_that_gpus_share_in_16_bits() -> None:
    of_peft = [imported("baseline-peft-bnb", ALONE.model_name, gpus) for gpus in (1, 2)]
    assert [config.unquantized_float32 for config in of_peft] == [True, False]


def test_a_benchmark_with_a_loss_in_chunks_is_not_our_trainer() -> None:
    ours = replace(ALONE, tuning="full", quantization="none", optimizer_state="adamw-fp32", chunked_loss=True)
    assert not stack.is_ours(ours)
    assert stack.is_ours(replace(ours, software=None))


def test_kernels_have_a_loss_in_chunks_for_three_families() -> None:
    names = (ALONE.model_name, LLAMA.model_name, SANTACODER, "mistralai/Mixtral-8x7B-v0.1", "of/nobody")
    found = [imported("foak-fast-kernels-liger", name).chunked_loss for name in names]
    assert found == [True, True, None, None, None]


def test_layers_with_layer_norms_go_on_in_float32_on_4_bit_weights() -> None:
    several = [imported("accelerated-peft-bnb", name) for name in (SANTACODER, ALONE.model_name)]
    assert [stack.lifts(config, CATALOGUE) for config in several] == [True, False]
    assert stack.lifts(replace(several[0], software=None), CATALOGUE)  # autocast, too, beside adapters alone
    cast = replace(several[0], software=None, optimizer_state="adamw-bf16")
    assert not stack.lifts(cast, CATALOGUE)
