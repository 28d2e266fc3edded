"""Supervised fine-tuning whose loss counts several times."""

from dataclasses import dataclass

from trainer.recipes.base import Recipe
from trainer.recipes.common import ADAPTER, BASE, OPTIMISER, PLACE, TrainingSettings
from trainer.recipes.params import Binds, Param

OWN = {
    "loss_weight": Param(
        kind=float, binds=Binds.SUBMIT, default=2.0, low=0.5, high=10.0, help="How often the loss counts."
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSettings(TrainingSettings):
    """With the parameter of its own."""

    loss_weight: float


WEIGHTED = Recipe(
    name="weighted",
    label="Weighted fine-tuning",
    help="counts the loss several times",
    entry="trainer.train.entries.weighted",
    params={**BASE, **ADAPTER, **OPTIMISER, **OWN, **PLACE},
    formats=("chat", "prompt_completion"),
    settings=WeightedSettings,
)
