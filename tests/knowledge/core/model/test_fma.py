"""fms-acceleration's rows beyond their plain columns."""

from __future__ import annotations

import pytest

from knowledge.core.data.sources import fma
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE

PLAIN = {
    "gpu_model": "NVIDIA A100-SXM4-80GB",
    "framework_config": "none",
    "model_name_or_path": "mistralai/Mistral-7B-v0.1",
    "num_gpus": "2",
    "per_device_train_batch_size": "4",
    "gradient_accumulation_steps": "",
    "peft_method": "",
    "torch_dtype": "bfloat16",
    "fp16": "",
    "bf16": "",
    "is_valid": "1",
    "train_tokens_per_second": "2000",
    "source_file": "refs/a100_80gb.csv",
}


def config(**changed: str) -> Config:
    values = PLAIN | changed
    return fma.parse(",".join(values) + "\n" + ",".join(values.values()) + "\n", CATALOGUE)[0].config


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, "adamw-bf16"),
        ({"bf16": "True"}, "adamw-fp32"),
        ({"bf16": "True", "num_gpus": "1"}, "adamw-bf16"),
        ({"torch_dtype": ""}, "adamw-bf16"),
        ({"torch_dtype": "float32"}, None),
        ({"peft_method": "lora"}, None),
    ],
)
def test_states_are_as_wide_as_the_weights_unless_mixed_precision_is_sharded(
    changed: dict[str, str], state: str | None
) -> None:
    assert config(**changed).optimizer_state == state


@pytest.mark.parametrize(
    ("changed", "precision"),
    [
        ({}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"torch_dtype": ""}, "bfloat16"),
        ({"torch_dtype": "", "fp16": "True"}, "float16"),
    ],
)
def test_files_without_a_width_have_the_default_of_what_ran_them(
    changed: dict[str, str], precision: str
) -> None:
    assert config(**changed).precision == precision


@pytest.mark.parametrize(
    ("changed", "steps"),
    [({}, 1), ({"source_file": "refs_orca/multipack.csv"}, 2), ({"gradient_accumulation_steps": "16"}, 16)],
)
def test_one_family_of_files_accumulates_without_saying_so(changed: dict[str, str], steps: int) -> None:
    assert config(**changed).gradient_accumulation_steps == steps
