"""A few peaks of software that history hardly has help other models with it, and promise nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.predict.test_our_trainer import THEIRS, history, of_ours
from tests.knowledge.core.predict.test_peak_correction import (
    GPU,
    MODELS,
    OTHER,
    config,
    drawn,
    peaks,
    scores,
    taught,
)

OFF = 1.2  # what runs of the new software take against physics
NEW = "rival 1.2"


def new(configs: Sequence[Config], gpu: str) -> list[Config]:
    return [replace(one, software=NEW, gpu_model=gpu) for one in configs]


@cache
def learnt(few: tuple[Measurement, ...] = ()) -> LearnedPredictor:
    """History of another stack, as physics says, and few imported runs."""
    known = [replace(one, software="stack 1.2") for one in THEIRS]
    return evaluation.predictor([*history(known, 1.0), *few], CATALOGUE)


def ten(gpu: str) -> list[Measurement]:
    """Peaks of two models with the new software."""
    some = [config(model, batch=batch) for model in MODELS[:2] for batch in (1, 2, 3, 4, 6)]
    return peaks(new(some, gpu), OFF)


def errors(predictor: LearnedPredictor, asked: Sequence[Config], factor: float = OFF) -> Array:
    truth = factor * cost_model.memory(columns(asked, CATALOGUE)).total
    found: Array = np.abs(scores(predictor, asked).memory / truth - 1)
    return found


@pytest.mark.parametrize("gpu", [GPU, OTHER])
@pytest.mark.parametrize("own", [True, False])
def test_ten_runs_of_two_models_help_a_third_whose_they_are(gpu: str, own: bool) -> None:
    asked = new([config(model, batch=batch) for model in MODELS[2:] for batch in (1, 4)], gpu)
    runs = ten(gpu)
    wise = taught(runs, learnt()) if own else learnt(tuple(replace(one, source="csv") for one in runs))
    assert errors(wise, asked).mean() < 2 / 3 * errors(learnt(), asked).mean()


def test_what_a_software_holds_says_little_of_another() -> None:
    asked = [of_ours(config(model, gpu=OTHER)) for model in MODELS[2:]]
    wise = learnt(tuple(replace(one, source="csv") for one in ten(OTHER)))
    assert errors(wise, asked, 1.0) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_where_there_is_history_such_runs_never_raise_a_promise(seed: int) -> None:
    """Over random runs with what they measured off by random factors."""
    random = np.random.default_rng(seed)
    runs, others = (new(drawn(random, count), GPU) for count in (20, 200))
    asked = [one for one in others if one not in runs]  # what ran may be promised
    rows = peaks(runs, np.exp(random.normal(random.normal(0, 0.2), 0.05, len(runs))))
    before, after = scores(learnt(), asked).p_valid, scores(taught(rows, learnt()), asked).p_valid
    assert np.all(after <= before + 1e-9)
