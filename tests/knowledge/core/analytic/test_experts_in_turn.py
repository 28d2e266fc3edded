"""Experts that work one after the other hold the work of one of them at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.analytic import activations
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_cost_model import LORA

MIXTRAL = replace(LORA, model_name="mistralai/Mixtral-8x7B-v0.1")
CHOSEN, EXPERTS, HIDDEN, WIDTH = 2, 8, 4096, 14336


def table(config: Config) -> ConfigTable:
    return columns([config], CATALOGUE)


def test_a_loop_over_experts_holds_what_one_of_them_keeps() -> None:
    looped, at_once = table(MIXTRAL), table(replace(MIXTRAL, expert_parallel=1))
    layer = activations.of_layer(looped)
    kept_by_scattermoe = 2 * CHOSEN * (HIDDEN + WIDTH)  # though experts do not learn
    assert activations.of_layer(at_once) == layer + kept_by_scattermoe
    less = activations.in_forward(at_once, layer) - activations.in_forward(looped, layer)
    of_experts = 2 * CHOSEN * (3 * WIDTH + HIDDEN) * looped.peak_tokens
    assert less == pytest.approx(of_experts * (1 - 1 / EXPERTS))
    gradients = activations.of_mlp_gradients(at_once) / activations.of_mlp_gradients(looped)
    assert gradients == pytest.approx(EXPERTS)


@pytest.mark.parametrize(
    "config",
    [
        LORA,
        replace(MIXTRAL, **OUR_TRAINER),
        replace(MIXTRAL, model_name="ibm-granite/granite-3.1-3b-a800m-instruct"),
    ],
)
def test_other_layers_hold_going_forward_what_they_keep(config: Config) -> None:
    c = table(config)
    layer = activations.of_layer(c)
    gradients = activations.of_mlp_gradients(c) * c.peak_tokens
    assert activations.in_forward(c, layer) == pytest.approx(activations.in_work(c, layer) - gradients)
