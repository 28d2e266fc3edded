"""Supervised fine-tuning: all rows are answers to learn."""

from trainer.recipes.base import Recipe
from trainer.recipes.common import ADAPTER, BASE, OPTIMISER, PLACE

SFT = Recipe(
    name="sft",
    label="Supervised fine-tuning",
    help="learns the answers of all rows alike",
    entry="trainer.train.entries.sft",
    params={**BASE, **ADAPTER, **OPTIMISER, **PLACE},
    formats=("chat", "sharegpt", "alpaca", "prompt_completion", "text"),
    tasks=("sft", "causal_lm", "clm"),
)
