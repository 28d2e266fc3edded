"""Where adapters are: what a list of modules comes down to, and what it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain import adapted_layers, config_space
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

QLORA = Config(
    model_name="meta-llama/Llama-2-7b-hf",
    tuning="qlora",
    gpu_model="T4",
    number_gpus=1,
    tokens_per_sample=512,
    per_device_batch_size=1,
    precision="float16",
    lora_r=8,
    gradient_checkpointing=False,
)


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("all-linear", "all-linear"),
        ("all_linear", "all-linear"),
        ("attention", "attention"),
        ("q_proj,v_proj", "query-value"),
        ("['q_proj', 'k_proj', 'v_proj', 'o_proj']", "attention"),
        ("q_proj k_proj v_proj o_proj c_attn", "attention"),
        ("q_proj;v_proj;gate_proj;up_proj;down_proj", "all-linear"),
        ("query_key_value", "query-value"),
        ("c_attn", "query-value"),
        ("some_layer", None),
        ("", None),
    ],
)
def test_a_list_of_modules_says_where_adapters_are(text: str, placed: str | None) -> None:
    assert adapted_layers.placement(text) == placed


def test_more_adapted_layers_keep_more_and_an_unstated_placement_lies_between() -> None:
    placed = [replace(QLORA, target_modules=name) for name in ("query-value", "attention", "all-linear")]
    c = columns([*placed, QLORA], CATALOGUE)
    few, some, all_of_them, unstated = cost_model.memory(c).total
    assert few < some < all_of_them
    assert few < unstated < all_of_them
    assert c.lora_parameters[:3].tolist() == [4_194_304, 8_388_608, 19_988_480]  # as peft counts them


def test_a_stack_that_prepares_4_bit_weights_holds_the_rest_in_float32() -> None:
    ours, theirs = (replace(QLORA, unquantized_float32=wide) for wide in (False, True))
    c = columns([ours, theirs, QLORA], CATALOGUE)
    held = cost_model.memory(c).weights
    assert held[1] - held[0] == pytest.approx(2 * 2 * 32_000 * 4096, rel=0.01)  # embeddings and head
    assert held[2] == held[1]


def test_our_trainer_states_its_choices_and_keeps_the_identity_of_its_runs() -> None:
    old = replace(QLORA, optimizer_state="adamw-fp32", chunked_loss=True)
    new = replace(old, target_modules="all-linear", unquantized_float32=False)
    assert config_space.config_hash(old) == config_space.config_hash(new)
    assert config_space.config_hash(new) != config_space.config_hash(replace(new, target_modules="attention"))
    before, after = cost_model.memory(columns([old, new], CATALOGUE)).total
    assert before == after
    assert config_space.OUR_TRAINER.items() <= vars_of(new).items()


def vars_of(config: Config) -> dict[str, object]:
    return {name: getattr(config, name) for name in config_space.FIELDS}


def test_logits_are_gone_before_a_layer_is_computed_again() -> None:
    short = replace(QLORA, gradient_checkpointing=True, flash_attention=True, target_modules="attention")
    eager = replace(short, flash_attention=False)
    long, long_eager = (replace(x, tokens_per_sample=8192) for x in (short, eager))
    allocated = [
        sum(part[row] for part in (stated.activations, stated.logits))
        for stated in [cost_model.memory(columns([short, eager, long, long_eager], CATALOGUE))]
        for row in range(4)
    ]
    assert allocated[0] == allocated[1]  # scores of 512 tokens are less than logits
    assert allocated[3] > 2 * allocated[2]  # those of 8,192 tokens are not
