"""The launch rules, and what a person may fix."""

from __future__ import annotations

import pytest

from knowledge.core.domain.config_space import refused
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE
from trainer.recipes import SFT, SHARDING_RULE, ParamError


def config(gpus: int, sharding: str | None) -> Config:
    return Config(
        model_name="m",
        method="lora",
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
        SFT.clean({"number_gpus": gpus, "sharding": sharding})


@pytest.mark.parametrize(("gpus", "sharding"), [(1, "ddp"), (1, "fsdp"), (2, "none"), (1, "hybrid")])
def test_gpus_that_cannot_share_a_model_in_this_way(gpus: int, sharding: str) -> None:
    assert refused(config(gpus, sharding), CATALOGUE) == f"The sharding {SHARDING_RULE}."
    with pytest.raises(ParamError, match="sharding"):
        SFT.clean({"number_gpus": gpus, "sharding": sharding})
