"""The product's count of a layer's memory, beside what autograd saves of it."""

from __future__ import annotations

import pytest

from tests.harness.sampling import mostly_on_demand

pytestmark = pytest.mark.torch

EXACT = 0.05
ARCHITECTURES = (
    *("llama", "cohere2", "deepseek_v3", "gemma3_text", "gpt_neox", "olmo", "opt", "phi", "phi3", "phimoe"),
    *("persimmon", "qwen2_moe", "qwen3_moe", "starcoder2"),
)
EAGER = ("gpt2", "gptj", "gpt_oss")
EVERY_TIME = ("llama", "deepseek_v3", "gpt_neox")


@pytest.mark.parametrize("architecture", mostly_on_demand(ARCHITECTURES, EVERY_TIME))
def test_every_term_is_within_five_percent(architecture: str) -> None:
    """As our trainer stores and computes; the other precisions are the benchmark's."""
    from benchmarks.knowledge.memory_terms import errors
    from benchmarks.trainer.memory_models import CASES

    ours = [case for case in CASES if case.state == "adamw-fp32" and not case.eager]
    assert len(ours) == 4
    for case in ours:
        for term, error in errors(architecture, case).items():
            assert abs(error) < EXACT, (case.name, term)


@pytest.mark.filterwarnings("ignore:fan_in_fan_out")
@pytest.mark.parametrize("architecture", mostly_on_demand(EAGER, ["gptj"]))
def test_layers_of_eager_attention_are_within_five_percent(architecture: str) -> None:
    """Those whose scores have widths of their own."""
    from benchmarks.knowledge.memory_terms import errors
    from benchmarks.trainer.memory_models import CASES

    cases = [case for case in CASES if case.eager and case.tuning == "lora" and not case.keeping]
    assert len(cases) == 4
    for case in cases:
        assert abs(errors(architecture, case)["layer"]) < EXACT, case.name
