"""LitGPT's own models and loop beside what autograd saves of them, and what its table measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from knowledge.core.analytic import activations, cost_model, litgpt
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.domain.catalogue import Catalogue, Model
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

TABLE = Path(__file__).parents[5] / "shared" / "data" / "history" / "litgpt" / "finetune_table.csv"
HIDDEN, WIDTH, VOCABULARY = 256, 704, 512
LLAMA = Model(
    model_name="tiny/llama",
    architecture="llama",
    parameters=2 * VOCABULARY * HIDDEN + 2 * (4 * HIDDEN**2 + 3 * HIDDEN * WIDTH),
    active_parameters=2 * VOCABULARY * HIDDEN + 2 * (4 * HIDDEN**2 + 3 * HIDDEN * WIDTH),
    layers=2,
    hidden=HIDDEN,
    heads=8,
    kv_heads=8,
    head_dim=32,
    mlp_width=WIDTH,
    mlp_gated=True,
    vocab=VOCABULARY,
    max_context=256,
    tied_embeddings=False,
    attention_layers=2,
)
GROUPED = replace(LLAMA, model_name="tiny/grouped", kv_heads=2)
TIED = replace(LLAMA, model_name="tiny/tied", tied_embeddings=True, parameters=LLAMA.parameters - 512 * 256)
PHI = replace(LLAMA, model_name="tiny/phi", architecture="phi", mlp_gated=False)
FALCON = replace(LLAMA, model_name="tiny/falcon", architecture="falcon", mlp_gated=False, kv_heads=1)
NEOX = replace(LLAMA, model_name="tiny/neox", architecture="gpt_neox", mlp_gated=False)
GEMMA2 = replace(LLAMA, model_name="tiny/gemma2", architecture="gemma2", kv_heads=4)
KNOWN: Catalogue = CATALOGUE.with_added(
    {model.model_name: model for model in (LLAMA, GROUPED, TIED, PHI, FALCON, NEOX, GEMMA2)}
)
# Bytes for each unit of the hidden width, by `benchmarks/trainer/litgpt_terms.py` with LitGPT 0.4.9:
# adapters on queries and values, on all linear layers, all weights, and the inputs of all linear layers.
SAVED = {
    "tiny/llama": (43.781, 57.344, 56.156, 11.5),
    "tiny/grouped": (38.281, 53.344, 52.156, 11.5),
    "tiny/phi": (26.766, 37.266, 29.141, 9.5),
    "tiny/falcon": (21.516, 33.766, 25.641, 9.5),
    "tiny/neox": (26.781, 37.281, 31.156, 11.5),
    "tiny/gemma2": (92.688, 107.25, 114.062, 11.5),
}


def asked(model: str, tuning: str = "lora", placed: str = "query-value", tokens: int = 192) -> Config:
    return Config(
        model_name=model,
        tuning=tuning,
        gpu_model="A10G",
        number_gpus=1,
        tokens_per_sample=tokens,
        per_device_batch_size=1,
        precision="bfloat16",
        quantization="bnb-4bit" if tuning == "qlora" else "none",
        lora_r=None if tuning == "full" else 8,
        target_modules=None if tuning == "full" else placed,
        optimizer_state="adamw-bf16",
        unquantized_float32=False if tuning == "qlora" else None,
        flash_attention=model != "tiny/gemma2",
        gradient_checkpointing=False,
        software="LitGPT bitsandbytes 0.42.0" if tuning == "qlora" else "LitGPT",
    )


def table(*configs: Config) -> ConfigTable:
    return columns(configs, KNOWN)


@pytest.mark.parametrize("model", SAVED)
def test_a_layer_keeps_what_autograd_saves_of_it(model: str) -> None:
    few, everywhere, full, inputs = SAVED[model]
    c = table(
        asked(model),
        asked(model, placed="all-linear"),
        asked(model, "full"),
        asked(model, "qlora"),
    )
    expected = np.array([few, everywhere, full, few + inputs])
    assert activations.of_layer(c) / HIDDEN == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("software", "kept"),
    [
        ("LitGPT bitsandbytes 0.42.0", True),
        ("accelerate 1.0.1 bitsandbytes 0.43.1 peft 0.12.0", True),
        ("accelerate 1.0.1 bitsandbytes 0.43.2", False),
        ("bitsandbytes 0.50.0 torch 2.13.0", False),
        ("peft 0.12.0", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("tuning", ["qlora", "lora"])
def test_4_bit_layers_keep_their_inputs_before_a_version_of_bitsandbytes(
    software: str | None, kept: bool, tuning: str
) -> None:
    later, asked_for = (
        table(replace(asked("tiny/llama", tuning), software=name))
        for name in ("bitsandbytes 0.50.0", software)
    )
    more = float(activations.of_layer(asked_for)[0] - activations.of_layer(later)[0])
    if "LitGPT" not in (software or ""):  # whose layers are others
        # The norm before the MLP, and the product of the gate; the result of attention is kept anyway.
        assert more == (2 * (HIDDEN + WIDTH) if kept and tuning == "qlora" else 0)
    assert bool(asked_for.kept_inputs[0]) is (kept and tuning == "qlora")


def test_the_head_is_in_4_bits_and_never_one_with_embeddings() -> None:
    c = table(asked("tiny/llama", "qlora"), asked("tiny/tied", "qlora"), asked("tiny/tied"))
    weights = cost_model.memory(c).weights
    head, blocks = VOCABULARY * HIDDEN, LLAMA.block_parameters
    assert weights[0] == weights[1] == litgpt.IN_4_BITS * (blocks + head) + 2 * head
    assert weights[2] == 2 * (blocks + 2 * head)


def test_inputs_of_the_former_micro_step_lie_beside_logits_where_these_are_made() -> None:
    tokens = 512  # four chunks of logits
    plain = cost_model.memory(table(asked("tiny/llama", tokens=tokens)))
    quantised = cost_model.memory(table(asked("tiny/llama", "qlora", tokens=tokens)))
    inputs = SAVED["tiny/llama"][3] * HIDDEN * LLAMA.layers * tokens
    assert quantised.activations[0] - plain.activations[0] == pytest.approx(2 * inputs)
    newer = replace(asked("tiny/llama", "qlora", tokens=tokens), software="LitGPT bitsandbytes 0.45.2")
    later = cost_model.memory(table(newer))
    assert later.activations[0] == pytest.approx(plain.activations[0])


def test_other_software_is_as_it_was() -> None:
    here, there = (
        table(replace(asked("tiny/llama"), software=name)) for name in ("LitGPT", "transformers 4.40")
    )
    assert here.litgpt[0]
    assert not there.litgpt[0]
    assert activations.of_layer(here) != activations.of_layer(there)


@pytest.fixture(scope="module")
def measured() -> list[Measurement]:
    if not TABLE.exists():
        pytest.skip("needs the shared history")
    return registry.parse(TABLE.read_text(encoding="utf-8"), CATALOGUE)


def test_peaks_of_the_table_are_as_the_source_says(measured: list[Measurement]) -> None:
    rows = [row for row in measured if row.has_peak and CATALOGUE.knows(row.config)]
    c = columns([row.config for row in rows], CATALOGUE)
    error = cost_model.memory(c).total / c.memory / [row.peak_memory_fraction for row in rows] - 1
    assert len(rows) == 40
    assert np.abs(error).mean() < 0.015
    assert error.min() > -0.01
    assert error.max() < 0.04


def test_settings_are_those_of_the_files_that_the_table_names(measured: list[Measurement]) -> None:
    by_file = {row.origin: row for row in measured}
    one = by_file["llama-2-7b/qlora.yaml"].config
    assert (one.lora_r, one.target_modules, one.gradient_accumulation_steps) == (32, "query-value", 4)
    assert (one.software, one.optimizer_state) == ("LitGPT bitsandbytes 0.42.0", "paged-adamw-fp32")
    other = by_file["gemma2-2b/lora.yaml"].config
    assert (other.model_name, other.lora_r, other.target_modules) == ("google/gemma-2-2b", 8, "all-linear")
    assert (other.flash_attention, other.optimizer_state) == (False, "adamw-bf16")
    gpus = {row.config.number_gpus for row in measured if row.config.tuning != "full"}
    assert gpus == {1}  # the files' own, of machines with one and four
    assert by_file["phi-2/full.yaml"].config.number_gpus == 2


def test_peaks_of_all_weights_that_are_those_of_adapters_are_not_learnt(measured: list[Measurement]) -> None:
    flagged = {row.origin for row in measured if "that of adapters" in row.flag_reason}
    assert flagged == {"llama-3.2-1b/full.yaml", "llama-3.2-3b/full.yaml", "phi-3/full.yaml"}
    assert not any(row.learn for row in measured if row.flag_reason)
    assert not any(row.learn_validity for row in measured if row.origin in flagged)


def test_of_a_file_that_is_not_known_nothing_is_made_up() -> None:
    names = "config,model_name,method,gpu_model,number_gpus,tokens_per_sample,per_device_batch_size"
    header = f"{names},torch_dtype,is_valid,train_runtime_min,peak_memory_gb"
    line = "new-7b/qlora.yaml,llama-2-7b,qlora,NVIDIA-A10G,4,512,2,bfloat16,1,30,13.68"
    (row,) = registry.parse(f"{header}\n{line}\n", CATALOGUE)
    found = row.config
    assert (found.lora_r, found.target_modules, found.number_gpus) == (None, None, 4)
    assert found.gradient_accumulation_steps == 1
    assert found.software == "LitGPT bitsandbytes 0.42.0"
