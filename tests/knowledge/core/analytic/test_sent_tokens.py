"""Memory of tokens that are sent to experts of other GPUs, as in ScatterMoE."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import activations, cost_model, stack
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

GRANITE = Config(  # 8 of 40 experts of width 512, 1,536 hidden
    model_name="ibm-granite/granite-3.1-3b-a800m-instruct",
    tuning="lora",
    gpu_model="A100-SXM4-80GB",
    number_gpus=4,
    tokens_per_sample=2048,
    per_device_batch_size=1,
    gradient_accumulation_steps=4,
    precision="bfloat16",
    lora_r=4,
    flash_attention=True,
    gradient_checkpointing=True,
    expert_parallel=2,
    sharding="fsdp",
    software="3.1.0",
)
GATHERED, WITHIN = 2 * 8 * 1536, 2 * 8 * 512  # bytes of a token


def kept(config: Config) -> float:
    """Bytes of a token that a layer keeps."""
    return float(activations.of_layer(columns([config], CATALOGUE))[0])


def sending(config: Config) -> float:
    """Bytes of a token that a layer holds which sends it."""
    c = columns([config], CATALOGUE)
    return float((activations.in_sending(c, activations.of_layer(c)) / c.peak_tokens)[0])


def test_scattermoe_keeps_what_experts_learn_from_though_they_do_not() -> None:
    assert kept(GRANITE) - kept(replace(GRANITE, expert_parallel=0)) == GATHERED + WITHIN
    full = replace(GRANITE, tuning="full", optimizer_state="adamw-bf16")
    assert kept(full) == kept(replace(full, expert_parallel=0))


def test_tokens_that_are_sent_lie_beside_logits() -> None:
    assert sending(GRANITE) == kept(GRANITE) + GATHERED + WITHIN
    assert sending(replace(GRANITE, expert_parallel=1)) == 0.0
    assert sending(replace(GRANITE, number_gpus=1, sharding="none")) == 0.0


def test_older_pytorch_frees_what_was_sent_when_the_next_layer_has_its_own() -> None:
    assert sending(replace(GRANITE, software="3.0.0")) - sending(GRANITE) == 8 * GATHERED


@pytest.mark.parametrize(
    ("software", "newer"),
    [("3.1.0", True), ("3.0.0.1", True), ("3.0.0", False), ("2.8.2", False), (None, False),
     ("fms-acceleration 2024-11-12", False)],
)  # fmt: skip
def test_which_software_has_the_newer_pytorch(software: str | None, newer: bool) -> None:
    assert stack.is_newer_pytorch(replace(GRANITE, software=software)) is newer


@pytest.mark.parametrize(
    ("software", "gpus", "degree", "tokens", "batch", "measured_gib"),
    [
        ("3.1.0", 2, 2, 8192, 1, 12.6),
        ("3.0.0", 2, 2, 8192, 1, 14.0),
        ("3.1.0", 4, 2, 8192, 2, 25.5),
        ("3.0.0", 4, 2, 8192, 2, 28.6),
        ("3.1.0", 4, 2, 2048, 16, 45.7),
        ("3.1.0", 4, 4, 2048, 2, 8.8),
    ],
)
def test_peaks_are_those_of_llmfinetuningbench(
    software: str, gpus: int, degree: int, tokens: int, batch: int, measured_gib: float
) -> None:
    one = replace(GRANITE, software=software, number_gpus=gpus, expert_parallel=degree)
    c = columns([replace(one, tokens_per_sample=tokens, per_device_batch_size=batch)], CATALOGUE)
    assert cost_model.memory(c).total[0] / 2**30 == pytest.approx(measured_gib, rel=0.05)


def test_experts_that_learn_make_their_states_in_those_blocks() -> None:
    few = replace(GRANITE, tuning="full", optimizer_state="adamw-bf16", software="3.0.0")
    c = columns([few, replace(few, per_device_batch_size=32)], CATALOGUE)
    stated, held = cost_model.memory(c), activations.in_sending(c, activations.of_layer(c))
    rounded = cost_model.CACHED_SHARE * (stated.activations + stated.logits)
    states = 6 * c.apart_here  # gradients and moments, 16 bits each
    assert held[0] < states[0]
    assert (stated.cached - rounded)[1] == pytest.approx((held - states)[1])
