"""Sentences where nothing can be offered."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from knowledge.core.domain.types import GpuPool, Inventory
from knowledge.core.explain.infeasible import why_nothing_fits
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values
from knowledge.recommendations.recommender import Recommender
from tests.knowledge.conftest import A100, CATALOGUE, CPU, DATA, L40S
from trainer.recipes import DEFAULT_RECIPE

pytestmark = pytest.mark.django_db
LLAMA = "meta-llama/Llama-3.1-8B"
HUGE = "llama3.1-405b"
BIG = "llama3.1-70b"
SHORTER = "samples of at most 32,768 tokens or a node with 1 × H200-SXM5-141GB"
H200 = "H200-SXM5-141GB"
TUNINGS = "the tuning lora, the tuning qlora"
ONE_L40S = replace(L40S, node_sizes=(1,))


def said(model: str, pool: GpuPool, max_nodes: int = 1, **fixed: Any) -> str:
    cleaned, stock = DEFAULT_RECIPE.clean(fixed), Inventory(pools=(pool,), max_nodes=max_nodes)
    found = Recommender.of(stock).recommend(model=model, fixed=cleaned, workload=DATA)
    assert not found.options
    return found.notes[0]


@pytest.mark.parametrize(
    ("model", "pool", "fixed", "remedies"),
    [
        (HUGE, A100, {"tuning": "full"}, "a smaller model"),
        (HUGE, A100, {"tuning": "qlora"}, "a node with 1 × B300-SXM-288GB"),
        (LLAMA, CPU, {}, "a node with 1 × L4 by the tuning lora in bfloat16"),
        (
            BIG,
            CPU,
            {"tokens_per_sample": 64},
            "a node with 1 × L40S by the tuning qlora in bfloat16",
        ),
        (BIG, A100, {"tuning": "full"}, f"{TUNINGS} or a node with 8 × B300-SXM-288GB"),
        (
            LLAMA,
            A100,
            {"tuning": "full", "sharding": "ddp"},
            f"the sharding left open, {TUNINGS} or a node with 2 × {H200}",
        ),
        (
            LLAMA,
            A100,
            {"tuning": "full", "number_gpus": 1},
            f"the number of GPUs left open, {TUNINGS} or a node with 1 × {H200}",
        ),
        (LLAMA, A100, {"per_device_batch_size": 1024}, "the batch size per GPU left open"),
        (LLAMA, ONE_L40S, {"tuning": "full"}, f"{TUNINGS}, a node with 4 × L40S or a node with 1 × {H200}"),
        (LLAMA, ONE_L40S, {"tuning": "lora", "tokens_per_sample": 131072}, SHORTER),
    ],
)
def test_what_is_out_of_reach_comes_with_the_remedies_that_are_left(
    model: str, pool: GpuPool, fixed: dict[str, Any], remedies: str
) -> None:
    note = said(model, pool, **fixed)
    assert re.match(rf"With {fixed.get('tuning', 'lora')} this needs about \d", note)
    assert note.endswith(f" It would fit with {remedies}.")


def test_what_only_physics_takes_for_possible_is_told_so() -> None:
    fixed = {"tuning": "lora"}
    request = Request(LLAMA, CATALOGUE.model(LLAMA), fixed, DATA, Inventory(pools=(A100,)), CATALOGUE)
    bound = {
        name: choice.value
        for name, choice in choose_submit_values(request).items()
        if choice.value is not None
    }
    note = why_nothing_fits(request, bound, SearchSpace())
    assert note.startswith("By physics this may fit, but hardly any")


def test_gpus_that_no_node_has_are_named_with_the_nodes_that_a_job_may_use() -> None:
    assert "cannot give 9 GPUs to one job on a single node" in said(LLAMA, L40S, number_gpus=9)
    assert "cannot give 9 GPUs to one job on up to 2 nodes" in said(LLAMA, L40S, max_nodes=2, number_gpus=9)


def test_a_sharding_that_does_not_go_with_the_gpus_is_explained() -> None:
    one = GpuPool(gpu_model="L40S", node_sizes=(1,), memory_bytes=L40S.memory_bytes)
    assert "The sharding none is for one GPU" in said(LLAMA, one, sharding="ddp")


def test_4_bits_are_neither_chosen_nor_a_remedy_for_a_mixture_of_experts() -> None:
    note = said("mixtral-8x22b", L40S)
    assert note.startswith("With lora this needs about")
    assert "qlora" not in note
    assert "experts cannot be stored in 4 bits" in said("mixtral-8x22b", A100, tuning="qlora")
