"""Recipes and the values that a person may set: the one table of both.

Standard library only: the portal's forms, REST and the recommender read it as well as the trainer.
`DEFAULT_RECIPE` is that of jobs that name none; `PARAMS` are the parameters of all recipes, each once.
"""

from __future__ import annotations

from trainer.recipes.base import Cost, Output, Recipe, Resume
from trainer.recipes.common import (
    ALL_LINEAR,
    ATTENTION,
    SHARDING_RULE,
    TrainingSettings,
    can_shard,
    shares_among,
)
from trainer.recipes.params import Binds, Constant, Param, ParamError
from trainer.recipes.sft import SFT

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (SFT,)}
DEFAULT_RECIPE = SFT
PARAMS: dict[str, Param] = {
    name: param for recipe in RECIPES.values() for name, param in recipe.params.items()
}

__all__ = [
    "ALL_LINEAR",
    "ATTENTION",
    "DEFAULT_RECIPE",
    "PARAMS",
    "RECIPES",
    "SHARDING_RULE",
    "Binds",
    "Constant",
    "Cost",
    "Output",
    "Param",
    "ParamError",
    "Recipe",
    "Resume",
    "TrainingSettings",
    "can_shard",
    "shares_among",
]
