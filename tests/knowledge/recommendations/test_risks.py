"""Recommendations where nothing is likely to fit.

4 bits are chosen if the user chose no tuning, else the configuration that most probably runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from knowledge.core.domain.types import GpuPool, Inventory, Option, Recommendation
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values, four_bits_instead
from knowledge.recommendations.recommender import Recommender
from tests.knowledge.conftest import CATALOGUE, CPU, DATA, GIB
from trainer.recipes import DEFAULT_RECIPE

pytestmark = pytest.mark.django_db
LLAMA = "meta-llama/Llama-3.1-8B"
# Without bfloat16 units the trainer shards nothing: many small GPUs hold no more than one does.
VOLTA = GpuPool(gpu_model="V100-PCIe-16GB", node_sizes=(8,), memory_bytes=15 * GIB)


def ask(*pools: GpuPool, **fixed: Any) -> Recommendation:
    cleaned = DEFAULT_RECIPE.clean(fixed)
    return Recommender.of(Inventory(pools=pools)).recommend(model=LLAMA, fixed=cleaned, workload=DATA)


def test_where_lora_fits_no_gpu_as_it_can_run_4_bits_are_chosen_and_the_reason_says_so() -> None:
    found = ask(VOLTA)
    assert found.bound["tuning"] == "qlora"
    assert found.chosen["tuning"].by == "recommended"
    assert found.chosen["tuning"].reason == "LoRA fits on no GPU here; 4-bit weights need less memory."
    assert found.best is not None
    assert found.best.p_valid >= 0.9


def test_what_is_recommended_passes_its_own_check() -> None:
    cleaned = DEFAULT_RECIPE.clean({"gpu_model": VOLTA.gpu_model})
    check = Recommender.of(Inventory(pools=(VOLTA,))).check(model=LLAMA, fixed=cleaned, workload=DATA)
    assert check.fits


def test_a_tuning_that_the_user_chose_stays() -> None:
    found = ask(VOLTA, tuning="lora")
    assert found.bound["tuning"] == "lora"
    assert found.options == ()


def test_where_4_bits_help_nobody_lora_stays() -> None:
    assert ask(CPU).bound["tuning"] == "lora"


def test_a_risk_is_told_that_4_bits_avoid() -> None:
    request = Request(LLAMA, None, {}, DATA, Inventory(pools=(VOLTA,)), CATALOGUE)
    lora = choose_submit_values(request)["tuning"]
    options: list[Option] = [replace(option, p_valid=0.17) for option in ask(VOLTA).options]
    known = replace(request, model=CATALOGUE.model(LLAMA))
    instead = four_bits_instead(known, lora, options)
    assert instead is not None
    assert instead.reason == "LoRA has a chance of at most 17% to run; 4-bit weights need less memory."
    assert four_bits_instead(known, lora, [replace(options[0], p_valid=0.9)]) is None


def test_of_risks_the_likeliest_of_each_bundle_is_offered_and_not_the_fastest() -> None:
    small = GpuPool(gpu_model="L40S", node_sizes=(2,), memory_bytes=int(17.8 * GIB))
    found = ask(small, tuning="lora", sharding="ddp", number_gpus=2)
    assert found.best is not None
    assert 0.05 < found.best.p_valid < 0.9
    for free in ({}, {"gradient_checkpointing": True}, {"per_device_batch_size": 1}):
        other = ask(small, tuning="lora", sharding="ddp", number_gpus=2, effective_batch_size=8, **free).best
        assert other is None or other.p_valid <= found.best.p_valid
    assert found.best.config.per_device_batch_size == 1
    assert found.best.config.gradient_checkpointing
