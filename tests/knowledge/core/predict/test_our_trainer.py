"""Peaks of our trainer are those of physics until history was nearer on runs that it had not seen."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from knowledge.core.evaluate import evaluation
from knowledge.core.predict import store
from knowledge.core.predict.memory_parts import scaled_parts
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.predict.test_memory_parts import option
from tests.knowledge.core.predict.test_peak_correction import MODELS, OTHER, config, peaks, scores

THEIRS = [
    config(model, "lora", batch, tokens, gpu=OTHER)
    for model in MODELS
    for batch, tokens in product((1, 2, 4), (256, 512, 1024))
]
ASKED = {
    "known": config(batch=3, gpu=OTHER),
    "model": config("ibm-granite/granite-3.1-2b-base", batch=3, gpu=OTHER),
    "gpu": config(batch=3, gpu="H100-SXM5-80GB"),
    "width": replace(config(batch=3, gpu=OTHER), precision="float32"),
    "tuning": config(tuning="qlora", batch=3, gpu=OTHER),
}


def of_ours(one: Config) -> Config:
    return replace(one, **OUR_TRAINER)


def history(configs: list[Config], factor: float | Array) -> list[Measurement]:
    return [replace(row, source="csv") for row in peaks(configs, factor, rates=True)]


def against_physics(predictor: LearnedPredictor, asked: Sequence[Config]) -> Array:
    found: Array = scores(predictor, asked).memory / cost_model.memory(columns(asked, CATALOGUE)).total
    return found


@functools.cache
def off(factor: float, gpus: tuple[str, ...] = (OTHER,)) -> LearnedPredictor:
    """History in which our trainer's peaks are so many times those of physics."""
    ours = [of_ours(replace(one, gpu_model=gpu)) for one in THEIRS for gpu in gpus]
    return evaluation.predictor([*history(THEIRS, 1.3), *history(ours, factor)], CATALOGUE)


@pytest.mark.parametrize(("runs", "by_physics"), [(0, True), (9, True), (12, False)])
def test_what_history_adds_for_other_software_is_not_added_to_our_trainer(
    runs: int, by_physics: bool
) -> None:
    ours = [of_ours(one) for one in THEIRS[:runs]]
    predictor = evaluation.predictor([*history(THEIRS, 1.3), *history(ours, 1.3)], CATALOGUE)
    found = against_physics(predictor, [ASKED["known"], of_ours(ASKED["known"])])
    assert found[0] > 1.15
    assert (found[1] == pytest.approx(1.0)) == by_physics


def test_runs_that_physics_predicts_leave_it_as_it_is_however_many_they_are() -> None:
    noise = np.exp(np.random.default_rng(0).normal(0.0, 0.02, len(THEIRS)))
    ours = history([of_ours(one) for one in THEIRS], noise)
    predictor = evaluation.predictor([*history(THEIRS, 1.3), *ours], CATALOGUE)
    assert against_physics(predictor, [*map(of_ours, ASKED.values())]) == pytest.approx(1.0)


def test_history_is_believed_only_of_what_was_left_out() -> None:
    one_gpu, two_gpus = off(1.3), off(1.3, (OTHER, "L4"))
    queries = [*map(of_ours, ASKED.values())]
    for predictor, believed in ((one_gpu, {"known", "model"}), (two_gpus, {"known", "model", "gpu"})):
        again = replace(predictor, knowledge=store.loads(store.dumps(predictor.knowledge), "it"))
        for some in (predictor, again):
            found = dict(zip(ASKED, against_physics(some, queries), strict=True))
            assert {name for name, factor in found.items() if factor > 1.15} == believed
            assert all(found[name] == pytest.approx(1.0) for name in ASKED if name not in believed)


def test_a_sharded_model_of_our_trainer_is_left_to_history() -> None:
    """Layers put together from shards are not in the prior."""
    theirs = [replace(one, number_gpus=4, sharding="fsdp", network="none") for one in THEIRS]
    predictor = evaluation.predictor(history([*THEIRS, *theirs], 1.3), CATALOGUE)
    query = of_ours(replace(ASKED["known"], number_gpus=4, sharding="fsdp"))
    assert against_physics(predictor, [query])[0] > 1.15


def test_the_parts_of_a_peak_by_physics_are_those_of_physics() -> None:
    query = of_ours(ASKED["gpu"])
    stated = cost_model.memory(columns([query], CATALOGUE))
    parts = scaled_parts(option(query, float(stated.total[0])), (), off(1.3).knowledge, CATALOGUE)
    assert parts["weights"] == pytest.approx(stated.weights)
    assert parts["activations"] == pytest.approx(stated.activations)
