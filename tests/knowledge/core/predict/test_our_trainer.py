"""Peaks of our trainer are those of physics until history knows enough of its runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from knowledge.core.evaluate import evaluation
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.predict.test_peak_correction import MODELS, OTHER, config, peaks, scores

THEIRS = [
    config(model, "lora", batch, tokens, gpu=OTHER)
    for model in MODELS
    for batch, tokens in product((1, 2, 4), (256, 512, 1024))
]


def of_ours(one: Config) -> Config:
    return replace(one, **OUR_TRAINER)


def history(configs: list[Config], factor: float) -> list[Measurement]:
    return [replace(row, source="csv") for row in peaks(configs, factor, rates=True)]


@pytest.mark.parametrize(("runs", "by_physics"), [(0, True), (9, True), (12, False)])
def test_what_history_adds_for_other_software_is_not_added_to_our_trainer(
    runs: int, by_physics: bool
) -> None:
    ours = [of_ours(one) for one in THEIRS[:runs]]
    predictor = evaluation.predictor([*history(THEIRS, 1.3), *history(ours, 1.3)], CATALOGUE)
    asked = [config(batch=3, gpu=OTHER), of_ours(config(batch=3, gpu=OTHER))]
    found = scores(predictor, asked).memory / cost_model.memory(columns(asked, CATALOGUE)).total
    assert found[0] > 1.15
    assert (found[1] == pytest.approx(1.0)) == by_physics
