"""Every recipe names only what there is."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from trainer.formats.recognise import FORMATS
from trainer.recipes import DEFAULT_RECIPE, PARAMS, RECIPES, Recipe
from trainer.step_metrics import STEP_METRICS

ROOT = Path(__file__).resolve().parents[2]
EVERY = pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))


@EVERY
def test_its_entry_formats_and_metrics_are_there(recipe: Recipe) -> None:
    assert RECIPES[recipe.name] is recipe
    assert (ROOT / f"{recipe.entry.replace('.', '/')}.py").is_file()
    assert set(recipe.formats) <= {form.name for form in FORMATS}
    assert set(recipe.metrics) <= {metric.name for metric in STEP_METRICS}


@EVERY
def test_its_settings_are_parameters_and_those_of_one_name_are_one(recipe: Recipe) -> None:
    assert {one.name for one in fields(recipe.settings)} <= recipe.params.keys()
    assert all(PARAMS[name] is param for name, param in recipe.params.items())


def test_rows_of_every_format_are_learnt_from_where_nobody_chooses() -> None:
    assert set(DEFAULT_RECIPE.formats) == {form.name for form in FORMATS}
