"""The state of a training in a checkpoint: trainable weights and AdamW's moments, both safetensors.

What else a resumed run needs is a pure function of seed and step (`Plan`, the learning rate, the random
numbers, which are seeded anew for each step), so no generator's state and no pickle lies in a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from trainer.checkpoint import BadCheckpoint, verify
from trainer.train.errors import TrainError
from trainer.train.journal import metrics_csv, read_metrics

WEIGHTS, MOMENTS, STATE, METRICS = "weights.safetensors", "optimizer.safetensors", "state.json", "metrics.csv"
_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a checkpoint holds. `identity` tells whether it belongs to this training; `updates` are the
    optimiser's, fewer than the steps where float16 overflowed and the scaler skipped some."""

    step: int
    updates: int
    tokens: int
    first_loss: float | None
    final_loss: float | None
    identity: dict[str, Any]
    scaler: dict[str, Any]
    rows: list[dict[str, Any]]
    weights: dict[str, torch.Tensor]
    moments: dict[str, torch.Tensor]

    def write(self, folder: Path) -> None:
        """Into a folder of a checkpoint being made."""
        save_file(self.weights, folder / WEIGHTS)
        save_file(self.moments, folder / MOMENTS)
        (folder / METRICS).write_text(metrics_csv(self.rows), encoding="utf-8")
        names = ("step", "updates", "tokens", "first_loss", "final_loss", "identity", "scaler")
        (folder / STATE).write_text(
            json.dumps({name: getattr(self, name) for name in names}), encoding="utf-8"
        )


def read(folder: Path, identity: dict[str, Any]) -> Snapshot:
    """The snapshot of a complete checkpoint. Raises TrainError if it is damaged or of another training."""
    try:
        verify(folder)
    except BadCheckpoint as wrong:
        raise TrainError(f"The checkpoint cannot be resumed: {wrong}.") from wrong
    state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    different = [name for name, value in identity.items() if state["identity"].get(name) != value]
    if different:
        raise TrainError(f"The checkpoint is of another training: {', '.join(different)} differ.")
    return Snapshot(
        rows=read_metrics(folder / METRICS),
        weights=load_file(folder / WEIGHTS),
        moments=load_file(folder / MOMENTS),
        **state,
    )


def trainable(model: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters that learn, by name."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def collect(model: Any, optimizer: Any) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Whole weights and moments on the CPU. With FSDP every process must call: shards are gathered."""
    weights = {name: whole(weight) for name, weight in trainable(model)}
    moments = {
        f"{name}.{moment}": whole(optimizer.state[weight][moment])
        for name, weight in trainable(model)
        for moment in _MOMENTS
        if moment in optimizer.state[weight]
    }
    return weights, moments


def updates(optimizer: Any) -> int:
    """How often the optimiser changed the weights."""
    return max((int(state["step"]) for state in optimizer.state.values()), default=0)


def restore(model: Any, optimizer: Any, snapshot: Snapshot) -> None:
    """Put the snapshot's weights and moments back, cut into shards where the model is."""
    with torch.no_grad():
        for name, weight in trainable(model):
            weight.copy_(_like(snapshot.weights[name], weight))
            if snapshot.updates:
                moments = {moment: _like(snapshot.moments[f"{name}.{moment}"], weight) for moment in _MOMENTS}
                optimizer.state[weight] = {"step": torch.tensor(float(snapshot.updates)), **moments}


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor, gathered from all shards, on the CPU and contiguous."""
    tensor = tensor.detach()
    if hasattr(tensor, "full_tensor"):  # a DTensor of FSDP
        tensor = tensor.full_tensor()
    return tensor.to("cpu", copy=True).contiguous()


def _like(tensor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    tensor = tensor.to(weight.device)
    if hasattr(weight, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(tensor, weight.device_mesh, weight.placements)
    return tensor
