"""Any spelling of a known software is that software."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import stack
from knowledge.core.domain.software import spelled
from knowledge.core.domain.types import Config

CONFIG = Config(
    model_name="llama2-7b", tuning="qlora", gpu_model="A100-SXM4-80GB", number_gpus=1, tokens_per_sample=512,
    per_device_batch_size=1, precision="bfloat16",
)  # fmt: skip


@pytest.mark.parametrize("name", ["LitGPT", "litgpt", "lit-gpt", "Lit GPT", "LIT_GPT"])
@pytest.mark.parametrize("version", ["", " 0.5.3", "==0.5.3", " v0.5.3", "-0.5.3"])
def test_litgpt_is_known_in_any_spelling(name: str, version: str) -> None:
    config = replace(CONFIG, software=f"{name}{version}")
    assert stack.is_litgpt(config)
    assert stack.software_family(config) == stack.LITGPT


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("lit-gpt==0.5, BitsAndBytes v0.42.0", "LitGPT 0.5, bitsandbytes 0.42.0"),
        ("Transformers==4.50.1", "transformers 4.50.1"),
        ("FMS HF Tuning 2.4.0", "fms-hf-tuning 2.4.0"),
        ("fms_acceleration 2024-09-01", "fms-acceleration 2024-09-01"),
        ("fms-acceleration 2024-09-01", "fms-acceleration 2024-09-01"),
        ("LitGPT bitsandbytes 0.41.0", "LitGPT bitsandbytes 0.41.0"),
        ("2.5.0", "2.5.0"),
        ("NeMo 24.07", "NeMo 24.07"),
        ("split-gpt 1.0", "split-gpt 1.0"),
        ("litgpts 1", "litgpts 1"),
    ],
)
def test_versions_are_read_in_any_spelling(written: str, known: str) -> None:
    assert spelled(written) == known
    assert spelled(known) == known


def test_keeping_inputs_follows_the_version_in_any_spelling() -> None:
    assert stack.keeps_inputs(replace(CONFIG, software="lit-gpt, BitsAndBytes==0.42.0"))
    assert not stack.keeps_inputs(replace(CONFIG, software="lit-gpt, BitsAndBytes==0.44.0"))
