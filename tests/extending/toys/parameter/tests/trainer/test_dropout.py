"""Dropout of the adapter; what it changes is shown where there is PyTorch."""

from __future__ import annotations

import pytest

from trainer.recipes import DEFAULT_RECIPE, ParamError


def test_a_training_is_told_its_dropout() -> None:
    assert DEFAULT_RECIPE.settings_of({"lora_dropout": 0.1}).lora_dropout == 0.1
    assert DEFAULT_RECIPE.settings_of({}).lora_dropout == 0.0
    with pytest.raises(ParamError, match="lora_dropout: must be between 0"):
        DEFAULT_RECIPE.settings_of({"lora_dropout": 0.9})
