"""A training loop in plain PyTorch, to compare the trainer's losses with.

It shares nothing with the trainer but the tokens, and knows neither peft nor micro-batches' padding: each row
goes through the model alone, unless rows are to be padded.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

IGNORED = -100
Row = tuple[list[int], list[int]]  # tokens and labels


class Lora(torch.nn.Module):
    """A linear layer with an adapter beside it."""

    def __init__(self, layer: Any, rank: int, alpha: int) -> None:
        super().__init__()
        self.layer = layer
        transposed = type(layer).__name__ == "Conv1D"
        inputs, outputs = layer.weight.shape if transposed else reversed(layer.weight.shape)
        self.a = torch.nn.Linear(inputs, rank, bias=False)
        self.b = torch.nn.Linear(rank, outputs, bias=False)
        torch.nn.init.kaiming_uniform_(self.a.weight, a=math.sqrt(5))
        torch.nn.init.zeros_(self.b.weight)
        self.scale = alpha / rank

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)

    def forward(self, given: torch.Tensor, *others: Any, **named: Any) -> torch.Tensor:
        added: torch.Tensor = self.layer(given, *others, **named) + self.b(self.a(given)) * self.scale
        return added


def adapted_layers(checkpoint: Path) -> set[str]:
    """Names of the layers that a checkpoint has adapters of."""
    from safetensors import safe_open

    with safe_open(checkpoint / "weights.safetensors", "pt") as file:
        names = {name.partition(".lora_")[0] for name in file.keys()}  # noqa: SIM118 -- it is no mapping
    return {name.removeprefix("base_model.model.") for name in names}


def with_adapters(model: Any, layers: set[str], rank: int, alpha: int, seed: int) -> Any:
    """The model, frozen but for new adapters beside these layers."""
    for weight in model.parameters():
        weight.requires_grad_(False)
    torch.manual_seed(seed)
    for name, module in list(model.named_modules()):
        if name in layers:
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, Lora(module, rank, alpha))
    return model


def train(
    model: Any, rows: Sequence[Row], *, steps: int, batch: int, rate: float, seed: int, padded: bool = False
) -> list[float]:
    """Losses of so many steps, each the mean over the learnt tokens of its batch."""
    model.train()
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learning, weight_decay=0.0, foreach=False, fused=False)
    losses = []
    for step, chosen in enumerate(_batches(len(rows), steps, batch, seed)):
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, steps, rate)
        targets = sum(label != IGNORED for row in chosen for label in rows[row][1][1:])
        together = [[rows[row] for row in chosen]] if padded else [[rows[row]] for row in chosen]
        loss = 0.0
        for part in together:
            share = _loss_sum(model, part) / targets
            share.backward()
            loss += share.item()
        torch.nn.utils.clip_grad_norm_([weight for weight in learning if weight.grad is not None], 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
    return losses


@torch.no_grad()
def evaluate(model: Any, rows: Sequence[Row]) -> float:
    """The mean loss over the learnt tokens, each row alone."""
    model.eval()
    total = sum(_loss_sum(model, [row]).item() for row in rows)
    return total / sum(label != IGNORED for _, labels in rows for label in labels[1:])


def _loss_sum(model: Any, rows: Sequence[Row]) -> torch.Tensor:
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([row + [0] * (longest - len(row)) for row, _ in rows])
    labels = torch.tensor([row + [IGNORED] * (longest - len(row)) for _, row in rows])
    logits = model(input_ids=ids, use_cache=False).logits[:, :-1].float().flatten(0, 1)
    return torch.nn.functional.cross_entropy(
        logits, labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
    )


def _batches(rows: int, steps: int, batch: int, seed: int) -> Iterator[list[int]]:
    order: list[int] = []
    for epoch in range(math.ceil(steps * batch / rows)):
        shuffled = list(range(rows))
        random.Random(f"{seed} {epoch}").shuffle(shuffled)
        order += shuffled
    return (order[step * batch : (step + 1) * batch] for step in range(steps))


def _rate(step: int, steps: int, peak: float) -> float:
    warm = math.ceil(0.03 * steps)
    return peak * (step + 1) / warm if step < warm else peak * (steps - step) / (steps - warm)
