"""The values that a checkpoint must agree on follow from the recipe's parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainer.recipes import DEFAULT_RECIPE, RECIPES, Binds, Param
from trainer.recipes.base import STATED_OTHERWISE


@pytest.mark.parametrize("name", RECIPES)
def test_every_value_that_changes_what_is_learnt_is_in_the_identity(name: str) -> None:
    recipe = RECIPES[name]
    identity = recipe.identity(recipe.settings_of({}))
    assert identity.pop("recipe") == name
    assert identity.keys() | STATED_OTHERWISE == set(recipe.binding(Binds.SUBMIT))
    assert identity["learning_rate"] == recipe.params["learning_rate"].default


@pytest.mark.parametrize("name", RECIPES)
def test_values_of_where_and_how_it_runs_are_not(name: str) -> None:
    recipe = RECIPES[name]
    assert not recipe.identity(recipe.settings_of({})).keys() & set(recipe.binding(Binds.DISPATCH))


def test_a_new_parameter_cannot_be_forgotten() -> None:
    warmup = Param(kind=float, binds=Binds.SUBMIT, default=0.0, help="Share of steps.")
    more = replace(DEFAULT_RECIPE, params={**DEFAULT_RECIPE.params, "warmup": warmup})
    with pytest.raises(AttributeError, match="warmup"):
        more.identity(more.settings_of({}))
    assert "warmup" not in DEFAULT_RECIPE.params
