"""A shifted copy of float32 logits, made by TRL to count the tokens predicted right.

The bytes are those of `benchmarks/trainer/shifted_logits.py`, which plays the allocator's rules.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.loss.logits import of_logits
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_cost_model import LORA

GRANITE_3 = replace(
    LORA,
    model_name="ibm-granite/granite-3.1-3b-a800m-instruct",
    software="3.0.0",
    tokens_per_sample=128,
    per_device_batch_size=8,
)
GRANITE_4 = replace(GRANITE_3, model_name="ibm-granite/granite-4.0-h-tiny")


def longer(config: Config) -> Config:
    return replace(config, tokens_per_sample=1024, per_device_batch_size=1)


@pytest.mark.parametrize(
    ("config", "bytes_per_logit"),
    [
        (GRANITE_3, 20.0),
        (longer(GRANITE_3), 16.0),
        (replace(GRANITE_3, tokens_per_sample=512, per_device_batch_size=2), 20.0),
        (GRANITE_4, 20.0),
        (longer(GRANITE_4), 16.0),
        (replace(GRANITE_4, tokens_per_sample=512, per_device_batch_size=2), 16.0),
        (replace(GRANITE_3, software="2.7.1"), 16.0),
        (replace(GRANITE_3, software="fms-acceleration 2024-11-09"), 16.0),
        (replace(GRANITE_3, software=None), 16.0),
        (replace(GRANITE_3, fast_kernels=True), 20.0),
        (replace(GRANITE_4, fast_kernels=True), 16.0),
        (replace(GRANITE_3, model_name="ibm-granite/granite-3.1-2b-base"), 16.0),
    ],
)
def test_one_more_block_where_rounding_does_not_make_room_for_all_logits(
    config: Config, bytes_per_logit: float
) -> None:
    c = columns([config], CATALOGUE)
    found = of_logits(c) / (c.vocab * c.peak_tokens)
    assert found[0] == pytest.approx(bytes_per_logit)
