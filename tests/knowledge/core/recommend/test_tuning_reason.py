"""Four bits are taken where they help, and what the reason says of memory is what the refusal says."""

from __future__ import annotations

import re

import pytest

from knowledge.core.domain.types import Choice, GpuPool, Inventory
from knowledge.core.explain.infeasible import why_nothing_fits
from knowledge.core.recommend.search import values
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values
from tests.knowledge.conftest import CATALOGUE, DATA


def chosen(model: str, gpus: int) -> tuple[Choice, str]:
    """The tuning for a model on a node of such A100 GPUs, and why it does not fit there."""
    pool = GpuPool(gpu_model="A100-SXM4-80GB", node_sizes=(gpus,), memory_bytes=80 << 30)
    request = Request(model, CATALOGUE.model(model), {}, DATA, Inventory(pools=(pool,)), CATALOGUE)
    choices = choose_submit_values(request)
    return choices["tuning"], why_nothing_fits(request, values(choices), SearchSpace())


def gib(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"([\d.]+) GiB", text)]


def test_no_four_bits_where_cutting_the_model_needs_less() -> None:
    """The base is cut over eight GPUs in bfloat16 alone: 4-bit weights would need more of each."""
    tuning, refused = chosen("llama3.1-405b", 8)
    assert tuning.value == "lora"
    assert "GiB" not in tuning.reason
    assert refused.startswith("With lora this needs about ")


def test_four_bits_are_told_by_the_same_figure() -> None:
    tuning, refused = chosen("llama3.1-405b", 1)
    assert tuning.value == "qlora"
    assert "more than any registered GPU has" in tuning.reason
    lora, qlora = gib(tuning.reason)
    assert refused.startswith("With qlora this needs about ")
    assert gib(refused)[0] == pytest.approx(qlora, rel=0.05)
    assert qlora < lora
