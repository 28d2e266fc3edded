"""Calibration runs: spread over tunings and sizes, and nothing that cannot run."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain import config_space
from knowledge.core.domain.types import Config, Inventory
from knowledge.core.evaluate.experiment_design import candidates, choose_experiments
from knowledge.core.predict.base import PriorPredictor
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import A100, CATALOGUE, CPU

TINY = ("builtin/tiny-llama", "builtin/tiny-qwen")


def test_candidates_of_a_cpu_slot_train_in_float32_without_4_bits() -> None:
    found = candidates(TINY, CPU, CATALOGUE)
    assert {config.precision for config in found} == {"float32"}
    assert {config.tuning for config in found} == {"lora", "full"}
    assert all(config_space.refused(config, CATALOGUE) is None for config in found)


def test_the_chosen_are_distinct_and_spread_over_models_tunings_and_sizes() -> None:
    chosen = choose_experiments(
        candidates(TINY, CPU, CATALOGUE),
        PriorPredictor(catalogue=CATALOGUE.on(Inventory(pools=(CPU,)))),
        12,
    )
    assert len(set(chosen)) == 12
    for name, values in (("model_name", 2), ("tuning", 2), ("gradient_checkpointing", 2)):
        assert len({getattr(config, name) for config in chosen}) == values
    assert len({config.tokens_per_sample for config in chosen}) >= 2
    assert len({config.per_device_batch_size for config in chosen}) >= 2


def test_what_cannot_fit_is_never_chosen() -> None:
    predictor = PriorPredictor(catalogue=CATALOGUE.on(Inventory(pools=(A100,))))
    chosen = choose_experiments(candidates(("llama3.1-70b", "llama3.2-1b"), A100, CATALOGUE), predictor, 20)
    assert chosen
    assert not any(x.model_name.endswith("70B") and x.tuning == "full" for x in chosen)


def test_no_candidate_has_more_tokens_than_its_model_has_positions() -> None:
    lengths = {config.tokens_per_sample for config in candidates(("gpt2",), A100, CATALOGUE)}
    assert max(lengths) == 1024


def test_the_same_choice_every_time() -> None:
    predictor = PriorPredictor(catalogue=CATALOGUE.on(Inventory(pools=(CPU,))))
    assert choose_experiments(candidates(TINY, CPU, CATALOGUE), predictor, 5) == choose_experiments(
        candidates(TINY, CPU, CATALOGUE), predictor, 5
    )


def test_the_chosen_runs_leave_less_uncertain_than_random_ones() -> None:
    predictor = LearnedPredictor(knowledge={}, catalogue=CATALOGUE.on(Inventory(pools=(A100,))))
    configs = candidates(("llama3.2-1b", "llama3.1-8b"), A100, CATALOGUE)
    c = columns(configs, predictor.catalogue)
    rates = predictor.score(configs, c).rate

    def left(ran: list[Config]) -> float:
        rows = [
            Measurement(
                config=one, status="ok", source="own", tokens_per_second=float(rates[configs.index(one)])
            )
            for one in ran
        ]
        own = replace(predictor, observations=Observations.of(rows, CATALOGUE))
        return float(np.trace(own.covariance(configs, c)))

    drawn = [left(random.Random(seed).sample(configs, 5)) for seed in range(5)]
    assert left(choose_experiments(configs, predictor, 5)) < min(drawn)


def test_what_own_runs_have_told_is_not_asked_again() -> None:
    predictor = LearnedPredictor(knowledge={}, catalogue=CATALOGUE.on(Inventory(pools=(CPU,))))
    configs = candidates(TINY, CPU, CATALOGUE)
    first = choose_experiments(configs, predictor, 3)
    rows = [Measurement(config=one, status="ok", source="own", tokens_per_second=1000.0) for one in first]
    assert not set(first) & set(
        choose_experiments(configs, replace(predictor, observations=Observations.of(rows, CATALOGUE)), 3)
    )
