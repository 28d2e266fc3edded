"""Peaks are shares of the memory of the GPU that ran them, wherever they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import OWN, Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config, GpuPool, Inventory
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import CATALOGUE, GIB

MODELS = ("builtin/tiny-llama", "builtin/tiny-qwen", "HuggingFaceTB/SmolLM-135M")
SLOT = 31 * GIB  # of a machine with one slot; the catalogue has 4 GiB


def config(model: str, tuning: str, batch: int, tokens: int) -> Config:
    return Config(
        model_name=model,
        tuning=tuning,
        gpu_model="cpu",
        number_gpus=1,
        tokens_per_sample=tokens,
        per_device_batch_size=batch,
        precision="float32",
        lora_r=16,
        gradient_checkpointing=False,
        **OUR_TRAINER,
    )


RUN = [
    config(*values) for values in product(MODELS, ("lora", "full"), (1, 2, 4), (128, 256, 512))
]  # more than it takes to learn


def peaks(configs: Sequence[Config]) -> Array:
    """Bytes by physics, the truth of these tests."""
    found: Array = cost_model.memory(columns(configs, CATALOGUE)).total
    return found


def ran(source: str = OWN, memory: float | None = SLOT) -> list[Measurement]:
    """The runs, each with its peak as a share of such a slot."""
    rates = cost_model.throughput(columns(RUN, CATALOGUE))
    noise = np.exp(np.random.default_rng(0).normal(0, 0.03, len(RUN)))
    return [
        Measurement(
            config=x,
            status="ok",
            source=source,
            tokens_per_second=float(rate),
            peak_memory_fraction=float(peak / (memory or 4 * GIB)),
            gpu_memory_bytes=memory,
        )
        for x, peak, rate in zip(RUN, peaks(RUN) * noise, rates, strict=True)
    ]


def on(memory: float, predictor: LearnedPredictor) -> LearnedPredictor:
    """The predictor where nodes have slots of so much memory."""
    pool = GpuPool(gpu_model="cpu", node_sizes=(1,), memory_bytes=int(memory))
    return replace(predictor, catalogue=CATALOGUE.on(Inventory(pools=(pool,))))


def test_what_slots_of_another_size_taught_is_right_in_bytes() -> None:
    learnt = LearnedPredictor(knowledge=evaluation.train(ran(), CATALOGUE), catalogue=CATALOGUE)
    asked = [config(model, "lora", 3, 384) for model in MODELS]
    for memory in (SLOT, SLOT / 4):
        found = [one.peak_memory_bytes.value for one in on(memory, learnt).predict(asked)]
        assert found == pytest.approx(peaks(asked), rel=0.1)


def test_a_repeat_needs_the_bytes_that_it_needed_elsewhere() -> None:
    own = LearnedPredictor(knowledge={}, catalogue=CATALOGUE, observations=Observations.of(ran(), CATALOGUE))
    for memory in (SLOT, SLOT / 4):
        found = on(memory, own).predict(RUN[:1])[0].peak_memory_bytes.value
        assert found == pytest.approx(peaks(RUN[:1])[0], rel=0.1)


def test_imported_shares_are_of_what_the_catalogue_has_whatever_nodes_have() -> None:
    """Peaks too few to learn from, but for their GPU."""
    few = [replace(row, source="csv", peak_memory_fraction=None) for row in ran(memory=None)]
    few[:10] = [replace(row, source="csv") for row in ran(memory=None)[:10]]
    learnt = LearnedPredictor(knowledge=evaluation.train(few, CATALOGUE), catalogue=CATALOGUE)
    before, after = (one.predict(RUN[10:12]) for one in (learnt, on(SLOT, learnt)))
    assert [one.peak_memory_bytes.value for one in after] == pytest.approx(
        [one.peak_memory_bytes.value for one in before], rel=0.01
    )
