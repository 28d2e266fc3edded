"""The entry of the recipe `weighted`."""

from typing import Any

import torch

from trainer.recipes.weighted import WeightedSettings
from trainer.train.entries import sft
from trainer.train.events import RunFigures
from trainer.train.loop import StopRequest
from trainer.train.loss import TokenLoss
from trainer.train.settings import TrainingSpec


class WeightedLoss(TokenLoss):
    def __init__(self, model: Any, weight: float) -> None:
        super().__init__(model)
        self.weight = weight

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.weight * super().forward(ids, labels)


def train(order: TrainingSpec, measured: RunFigures, stop: StopRequest, started: float) -> None:
    settings = order.settings
    assert isinstance(settings, WeightedSettings)
    sft.train(order, measured, stop, started, lambda model: WeightedLoss(model, settings.loss_weight))
