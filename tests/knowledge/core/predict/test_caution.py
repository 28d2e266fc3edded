"""Caution never shrinks without evidence.

After runs with room to spare nothing is promised that needs far more of the GPU, whatever else was measured.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config
from knowledge.core.model.estimators import Ensemble, ProbabilityMap, classifiers
from knowledge.core.model.fitted_model import FittedModel, Validity, fit_model
from knowledge.core.model.training_support import STEP_OF_SETTING, TrainingSupport
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.core.predict.predictor import LearnedPredictor
from tests.harness.sampling import mostly_on_demand
from tests.knowledge.conftest import CATALOGUE

MODELS = ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-7B")
GPUS = ("A100-SXM4-80GB", "T4", "L4")


class Hopeful(Ensemble):
    """A classifier by which everything runs."""

    def predict(self, X: Array) -> Array:
        return np.ones(len(X))


class AsIs(ProbabilityMap):
    def predict(self, raw: Array) -> Array:
        return raw


def drawn(random: np.random.Generator, count: int) -> list[Config]:
    return [
        Config(
            model_name=str(random.choice(MODELS)),
            tuning=str(random.choice(["full", "lora"])),
            gpu_model=str(random.choice(GPUS)),
            number_gpus=1,
            tokens_per_sample=int(2 ** random.integers(7, 13)),
            per_device_batch_size=int(2 ** random.integers(0, 6)),
            precision="bfloat16",
            optimizer_state="adamw-bf16",
            gradient_checkpointing=bool(random.integers(2)),
        )
        for _ in range(count)
    ]


def shares(configs: Sequence[Config]) -> Array:
    c = columns(configs, CATALOGUE)
    return cost_model.memory(c).total / c.memory


@functools.cache
def learnt() -> FittedModel:
    """A correction learnt of runs that were measured as physics says."""
    configs = [x for x in drawn(np.random.default_rng(1), 300) if shares([x])[0] < 1]
    rates = cost_model.throughput(columns(configs, CATALOGUE))
    rows = [
        Measurement(config=config, status="ok", source="synthetic", tokens_per_second=float(rate))
        for config, rate in zip(configs, rates, strict=True)
    ]
    found = fit_model(rows, "gpu", CATALOGUE)
    assert found is not None
    return replace(found, validity=Validity(Hopeful(classifiers), AsIs()))


def promised(history: Sequence[Config], asked: Sequence[Config]) -> Array:
    """Probability of each that it runs, where these were measured."""
    known = replace(learnt(), seen=TrainingSupport.of(history, columns(history, CATALOGUE)))
    predictor = LearnedPredictor(knowledge={"gpu": known}, catalogue=CATALOGUE)
    return predictor.score(asked, columns(asked, CATALOGUE)).p_valid


@pytest.mark.parametrize("seed", mostly_on_demand(range(12), range(3)))
def test_runs_with_room_to_spare_promise_nothing_near_the_limit(seed: int) -> None:
    random = np.random.default_rng(seed)
    some = [x for x in drawn(random, 60) if shares([x])[0] < 1][: random.integers(1, 25)]
    queries = drawn(random, 60)
    far = [x for x in drawn(random, 200) if shares([x])[0] < 0.3]
    beyond = shares(queries) > STEP_OF_SETTING * shares(far).max()
    before, after = promised(some, queries), promised([*some, *far], queries)
    assert beyond.sum() > 5
    assert (before >= MIN_P_VALID)[beyond & (after >= MIN_P_VALID)].all()


def test_a_run_near_the_limit_is_evidence() -> None:
    small = replace(
        drawn(np.random.default_rng(0), 1)[0], model_name=MODELS[0], gpu_model="A100-SXM4-80GB",
        tuning="lora", tokens_per_sample=512, per_device_batch_size=1, gradient_checkpointing=False,
    )  # fmt: skip
    sizes = [replace(small, per_device_batch_size=size) for size in range(1, 200)]
    full = next(x for x in sizes if shares([x])[0] > 1)
    nearly = next(x for x in sizes if shares([x])[0] > 0.9)
    assert promised([small] * 30, [full]) < MIN_P_VALID
    assert promised([small] * 30 + [nearly], [full]) == 1.0
