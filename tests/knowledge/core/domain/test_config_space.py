"""The launch rules, and what a person may fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.config_space import refused
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE
from trainer.recipes import DEFAULT_RECIPE, SHARDING_RULE, ParamError


def config(gpus: int, sharding: str | None) -> Config:
    return Config(
        model_name="m",
        tuning="lora",
        gpu_model="A100",
        number_gpus=gpus,
        tokens_per_sample=512,
        per_device_batch_size=1,
        sharding=sharding,
    )


@pytest.mark.parametrize(
    ("gpus", "sharding"), [(1, "none"), (1, None), (2, "ddp"), (2, "fsdp"), (2, None), (2, "hybrid")]
)
def test_gpus_that_share_a_model_in_this_way(gpus: int, sharding: str | None) -> None:
    assert refused(config(gpus, sharding), CATALOGUE) is None
    if sharding != "hybrid":  # known from past executions; nobody may ask for it
        DEFAULT_RECIPE.clean({"number_gpus": gpus, "sharding": sharding})


@pytest.mark.parametrize(("gpus", "sharding"), [(1, "ddp"), (1, "fsdp"), (2, "none"), (1, "hybrid")])
def test_gpus_that_cannot_share_a_model_in_this_way(gpus: int, sharding: str) -> None:
    assert refused(config(gpus, sharding), CATALOGUE) == f"The sharding {SHARDING_RULE}."
    with pytest.raises(ParamError, match="sharding"):
        DEFAULT_RECIPE.clean({"number_gpus": gpus, "sharding": sharding})


@pytest.mark.parametrize(
    ("model", "gpus", "degree", "reason"),
    [
        ("ibm-granite/granite-3.1-3b-a800m-instruct", 16, 8, None),
        ("ibm-granite/granite-3.1-3b-a800m-instruct", 16, 16, "40 experts are not a multiple"),
        ("ibm-granite/granite-3.1-3b-a800m-instruct", 4, 8, "4 GPUs are not a multiple"),
        ("ibm-granite/granite-3.1-3b-a800m-instruct", 3, 1, None),
        ("unknown/mixture", 16, 16, None),
    ],
)
def test_gpus_share_experts_and_are_grouped_evenly(
    model: str, gpus: int, degree: int, reason: str | None
) -> None:
    """As fms-acceleration's ScatterMoE demands it."""
    found = refused(replace(config(gpus, "fsdp"), model_name=model, expert_parallel=degree), CATALOGUE)
    assert found is None if reason is None else found is not None and found.startswith(reason)
