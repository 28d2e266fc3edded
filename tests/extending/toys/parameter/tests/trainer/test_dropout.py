"""Dropout of the adapter; what it changes is shown where there is PyTorch."""

from __future__ import annotations

import pytest

from trainer.train.errors import TrainError
from trainer.train.settings import TrainingSettings


def test_a_training_is_told_its_dropout() -> None:
    assert TrainingSettings.of({"lora_dropout": 0.1}).lora_dropout == 0.1
    assert TrainingSettings.of({}).lora_dropout == 0.0
    with pytest.raises(TrainError, match="lora_dropout must be between 0"):
        TrainingSettings.of({"lora_dropout": 0.9})
