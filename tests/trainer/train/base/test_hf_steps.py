"""Predicted peaks beside whole steps of transformers' Trainer, played without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.sampling import mostly_on_demand

pytestmark = pytest.mark.torch

LAYER, RESERVED = 0.04, 0.06
WAYS: tuple[dict[str, Any], ...] = (
    {"model": "gpt2"},  # layer norms in float32, dropout
    {"model": "opt-1.3b", "eager": True},
    {"model": "pythia-410m", "placed": "all-linear", "in_4_bits": True, "prepared": False},  # float32 between
    {"model": "gemma-2b"},  # one key for all heads
    {"model": "TinyLlama-1.1B", "placed": "all-linear", "in_4_bits": True},
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", mostly_on_demand(WAYS, WAYS[:2]), ids=lambda way: way["model"])
def test_layers_of_a_small_gpu_keep_what_is_counted(way: dict[str, Any]) -> None:
    """Beside the mask of padded rows, 2 bytes for each pair of tokens, of which no column tells."""
    from benchmarks.trainer.hf_steps import Case, kept_by_layer
    from knowledge.core.analytic import activations

    case = Case(**way)
    mask = 0 if case.eager else 2 * case.batch * case.tokens**2
    told = float(activations.of_layer(case.table())[0]) * case.batch * case.tokens
    assert told == pytest.approx(kept_by_layer(case) - mask, rel=LAYER)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("checkpointing", [True, False])
def test_a_peak_is_what_the_allocator_reserves(checkpointing: bool) -> None:
    from benchmarks.trainer.hf_steps import Case, errors, played

    case = Case("pythia-410m", batch=4, checkpointing=checkpointing, layers=6)
    wrong = errors(case, played(case))
    assert abs(wrong["weights"]) < 0.01
    assert abs(wrong["adapters"]) < 0.01
    assert abs(wrong["reserved"]) < RESERVED
