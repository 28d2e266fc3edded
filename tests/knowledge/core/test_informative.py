"""Calibration runs: spread over methods and sizes, and nothing that cannot run."""

from __future__ import annotations

from knowledge.core import space
from knowledge.core.columns import hardware
from knowledge.core.informative import candidates, choose
from knowledge.core.predictor import PriorPredictor
from knowledge.core.types import Inventory
from tests.knowledge.conftest import A100, CPU

TINY = ("builtin/tiny-llama", "builtin/tiny-qwen")


def test_candidates_of_a_cpu_slot_train_in_float32_without_4_bits() -> None:
    found = candidates(TINY, CPU)
    assert {config.precision for config in found} == {"float32"}
    assert {config.method for config in found} == {"lora", "full"}
    assert all(space.refused(config) is None for config in found)


def test_the_chosen_are_distinct_and_spread_over_models_methods_and_sizes() -> None:
    chosen = choose(candidates(TINY, CPU), PriorPredictor(here=hardware(Inventory(pools=(CPU,)))), 12)
    assert len(set(chosen)) == 12
    for name, values in (("model_name", 2), ("method", 2), ("gradient_checkpointing", 2)):
        assert len({getattr(config, name) for config in chosen}) == values
    assert len({config.tokens_per_sample for config in chosen}) >= 2
    assert len({config.per_device_batch_size for config in chosen}) >= 2


def test_what_cannot_fit_is_never_chosen() -> None:
    predictor = PriorPredictor(here=hardware(Inventory(pools=(A100,))))
    chosen = choose(candidates(("llama3.1-70b", "llama3.2-1b"), A100), predictor, 20)
    assert chosen
    assert not any(x.model_name.endswith("70B") and x.method == "full" for x in chosen)


def test_the_same_choice_every_time() -> None:
    predictor = PriorPredictor(here=hardware(Inventory(pools=(CPU,))))
    assert choose(candidates(TINY, CPU), predictor, 5) == choose(candidates(TINY, CPU), predictor, 5)
