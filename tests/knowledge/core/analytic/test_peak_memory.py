"""Peaks fitted in parts to measurements.

The tests also cover what a measurement can show of each part.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.peak_memory import PeakMemory, peak_parts, shown, with_paged
from knowledge.core.domain import config_space
from knowledge.core.domain.types import Config
from knowledge.core.predict.base import PriorPredictor
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_step_time import BASE

CONFIGS = [
    replace(BASE, model_name=model, tuning=tuning, number_gpus=gpus, per_device_batch_size=batch)
    for model in ("llama3.2-1b", "llama3.2-3b", "mistral-7b-v0.1")
    for tuning in ("full", "lora")
    for gpus in (1, 2, 8)
    for batch in (1, 4, 16)
]
HASHES = [config_space.config_hash(x) for x in CONFIGS]


def test_what_frameworks_hold_beyond_the_prior_is_learnt() -> None:
    c = columns(CONFIGS, CATALOGUE)
    weights = np.exp(np.random.default_rng(0).normal(0.3, 0.3, peak_parts(c).shape[1]))
    measured = np.minimum(peak_parts(c) @ weights, c.memory)
    found = PeakMemory().fit(c, measured, HASHES)
    assert np.max(np.abs(np.log(found.observed(c) / measured))) < 0.15


def test_stated_parts_are_those_of_the_prior() -> None:
    shared = [replace(x, expert_parallel=4, number_gpus=8) for x in CONFIGS if x.number_gpus == 8]
    c = columns([*CONFIGS, *shared], CATALOGUE)
    assert peak_parts(c).sum(axis=1) == pytest.approx(cost_model.memory(c).total)


def test_a_full_gpu_says_only_that_the_peak_is_not_lower() -> None:
    full = replace(CONFIGS[-1], tuning="full", number_gpus=1, optimizer_state="adamw-fp32")
    large = [replace(full, per_device_batch_size=batch) for batch in (1, 2, 4)]
    c = columns(large, CATALOGUE)
    found = PeakMemory().fit(c, c.memory, [config_space.config_hash(x) for x in large])
    assert np.all(found.value(c) > 1.2 * c.memory)
    assert np.all(found.observed(c) == c.memory)


@pytest.mark.parametrize("config", [CONFIGS[0], CONFIGS[-1]])
def test_shares_of_a_peak_make_the_whole(config: Config) -> None:
    c = columns(CONFIGS, CATALOGUE)
    found = PeakMemory().fit(c, np.minimum(peak_parts(c).sum(axis=1), c.memory), HASHES)
    features = found.features(columns([config], CATALOGUE))[0]
    assert features[1:].sum() == pytest.approx(1.0)
    assert np.exp(features[0]) == pytest.approx(found.value(columns([config], CATALOGUE))[0] / c.memory[0])


def test_what_checkpointed_runs_kept_says_nothing_of_runs_that_keep_all() -> None:
    c = columns(CONFIGS, CATALOGUE)
    stated = peak_parts(c).sum(axis=1)
    lean = np.minimum(stated - 0.6 * cost_model.memory(c).activations, c.memory)
    found = PeakMemory().fit(c, lean, HASHES)
    whole = columns([replace(CONFIGS[-1], gradient_checkpointing=False)], CATALOGUE)
    assert found.value(whole)[0] > cost_model.memory(whole).activations[0]


def test_a_single_run_moves_the_weights_less_than_what_was_measured() -> None:
    """Weights are pulled to the stated ones as far as sources are known to lie apart."""
    c = columns(CONFIGS[:1], CATALOGUE)
    stated = cost_model.memory(c).total
    found = PeakMemory().fit(c, 2 * stated, HASHES[:1])
    assert 1.2 < (found.value(c) / stated)[0] < 1.7


PAGED = replace(
    BASE, model_name="ibm-granite/granite-3.1-8b-instruct", tuning="full", tokens_per_sample=1024,
    per_device_batch_size=1, gradient_accumulation_steps=1, optimizer_state="paged-adamw-fp32",
    sharding="fsdp",
)  # fmt: skip


def test_paged_states_stay_as_long_as_the_gpu_has_room() -> None:
    """LLMFineTuningBench's Granite 8B took 13.9, 76.7 and 80 GiB on 16, 2 and one GPU."""
    alone, shared = replace(PAGED, number_gpus=1, sharding="none"), replace(PAGED, per_device_batch_size=4)
    c = columns([replace(PAGED, number_gpus=16), replace(shared, number_gpus=2), alone], CATALOGUE)
    stated = cost_model.memory(c).total
    peaks = shown(c, stated)
    assert peaks[0] == stated[0] < 0.2 * c.memory[0]
    assert 1.02 * stated[1] < peaks[1] < c.memory[1]
    assert peaks[1] / 2**30 == pytest.approx(76.7, rel=0.02)
    assert stated[2] == pytest.approx(c.memory[2] / cost_model.MEMORY_MARGIN)
    assert peaks[2] == c.memory[2]
    whole = columns([replace(alone, optimizer_state="adamw-fp32")], CATALOGUE)
    stated = cost_model.memory(whole).total
    assert with_paged(whole, stated) == stated > shown(whole, stated)


def test_a_gpu_full_of_paged_states_is_no_reason_to_fail() -> None:
    alone = replace(PAGED, number_gpus=1, sharding="none", flash_attention=True)
    found = PriorPredictor(catalogue=CATALOGUE).predict([alone])[0]
    assert found.peak_memory_bytes.value == columns([alone], CATALOGUE).memory[0]
    assert found.p_valid == pytest.approx(0.9)
