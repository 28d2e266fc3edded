"""The state of a training in a checkpoint.

It consists of trainable weights and AdamW's moments, both safetensors. All else that a resumed
run needs is a pure function of seed and step (`Plan`, the learning rate, the random numbers,
which are seeded anew for each step), so no generator's state and no pickle lies in a
checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from trainer.checkpoint import BadCheckpoint, verify
from trainer.train.errors import CheckpointFault
from trainer.train.events import metrics_csv, read_metrics

WEIGHTS, MOMENTS, STATE, METRICS = "weights.safetensors", "optimizer.safetensors", "state.json", "metrics.csv"
_STEP = "step"  # of each weight: one that had no gradient in a step is behind the others
_SHAPED = ("exp_avg", "exp_avg_sq")
_MISSING = object()  # equal to no value of an identity


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a checkpoint holds.

    `identity` tells whether it belongs to this training; `updates` are the optimiser's, fewer
    than the steps where float16 overflowed and the scaler skipped some.
    """

    step: int
    updates: int
    tokens: int
    first_loss: float | None
    final_loss: float | None
    identity: dict[str, Any]
    scaler: dict[str, Any]
    rows: list[dict[str, Any]]
    weights: Mapping[str, torch.Tensor]
    moments: Mapping[str, torch.Tensor]

    def write(self, folder: Path) -> None:
        """Into a folder of a checkpoint being made."""
        save_file(dict(self.weights), folder / WEIGHTS)
        save_file(dict(self.moments), folder / MOMENTS)
        (folder / METRICS).write_text(metrics_csv(self.rows), encoding="utf-8")
        names = ("step", "updates", "tokens", "first_loss", "final_loss", "identity", "scaler")
        (folder / STATE).write_text(
            json.dumps({name: getattr(self, name) for name in names}), encoding="utf-8"
        )


class Stored(Mapping[str, torch.Tensor]):
    """The tensors of a safetensors file, each read when it is asked for.

    The file as a whole, once for every GPU of a node, would fill the host's memory.
    """

    def __init__(self, path: Path) -> None:
        self._file = safe_open(path, framework="pt")

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.keys())

    def __len__(self) -> int:
        return len(self._file.keys())

    def __contains__(self, name: object) -> bool:
        return name in [*self]  # of a name that is not there, reading raises no KeyError


@contextmanager
def blamed() -> Iterator[None]:
    """Whatever goes wrong while a checkpoint is taken up raises CheckpointFault.

    A job must not fail for what another node wrote. What was rather the fault of this node, or of
    its memory, is told by the cause (`trainer.train.process.explain`).
    """
    try:
        yield
    except CheckpointFault:
        raise
    except Exception as wrong:
        detail = f"{type(wrong).__name__}: {wrong}".splitlines()[0]
        raise CheckpointFault(f"The checkpoint cannot be loaded ({detail}).") from wrong


def check(folder: Path) -> None:
    """Raises CheckpointFault if the checkpoint is damaged. Reads all of it."""
    try:
        verify(folder)
    except BadCheckpoint as wrong:
        raise CheckpointFault(f"The checkpoint cannot be resumed: {wrong}.") from wrong


@blamed()
def read(folder: Path, identity: dict[str, Any], step: int | None = None) -> Snapshot:
    """Return the snapshot of a checkpoint that was checked.

    step: of which it should be. Raises CheckpointFault if it is of another training.
    """
    state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    noted = state["identity"]
    different = [name for name, value in identity.items() if noted.get(name, _MISSING) != value]
    if different == ["tokens"]:
        raise CheckpointFault(
            "The checkpoint is of other tokens: the data, the tokenizer, its chat template or the software"
            " that reads them changed."
        )
    if different:
        raise CheckpointFault(f"The checkpoint is of another training: {', '.join(different)} differ.")
    if step not in (None, state["step"]):
        raise CheckpointFault(f"The checkpoint is of step {state['step']}, not {step}.")
    return Snapshot(
        rows=read_metrics(folder / METRICS),
        weights=Stored(folder / WEIGHTS),
        moments=Stored(folder / MOMENTS),
        **state,
    )


@blamed()
def identity(folder: Path) -> dict[str, Any]:
    """The checkpoint's notes of its training.

    Raises CheckpointFault where it has none.
    """
    noted: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf-8"))["identity"]
    float(noted.get("now") or 0.0)  # a template may ask for it before the notes are compared
    return noted


def trainable(model: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters that learn, by name."""
    return ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)


def weights(model: Any, *, keep: bool, frozen: bool = False) -> dict[str, torch.Tensor]:
    """Return the whole trainable weights on the CPU; nothing unless `keep`.

    With `frozen` they are all weights and stored buffers. With FSDP every process must call,
    since shards are gathered. One of them keeps: a copy for each GPU of a node would fill the
    host's memory.
    """
    return _gathered(_stored(model) if frozen else trainable(model), keep)


def _stored(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The weights in a file of the model; a weight used twice has its first name."""
    yield from model.named_parameters()
    stored = model.state_dict().keys()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in stored)


def moments(model: Any, optimizer: Any, *, keep: bool) -> dict[str, torch.Tensor]:
    """Return AdamW's moments, in the manner of `weights`.

    There are none of a weight that had no gradient yet.
    """
    named = (
        (f"{name}.{moment}", optimizer.state[weight][moment])
        for name, weight in trainable(model)
        if weight in optimizer.state
        for moment in (_STEP, *_SHAPED)
    )
    return _gathered(named, keep)


def _gathered(named: Iterable[tuple[str, torch.Tensor]], keep: bool) -> dict[str, torch.Tensor]:
    kept = {}
    for name, tensor in named:
        gathered = whole(tensor)
        if keep:
            kept[name] = gathered.to("cpu", copy=True).contiguous()
    return kept


def updates(optimizer: Any) -> int:
    """How often the optimiser changed the weights."""
    return max((int(state[_STEP]) for state in optimizer.state.values()), default=0)


def restore(model: Any, optimizer: Any, snapshot: Snapshot) -> None:
    """Put the snapshot's weights and moments back, cut into shards where the model is.

    Raises CheckpointFault for any that are missing, or that the model cannot have.
    """
    with torch.no_grad(), blamed():
        for name, weight in trainable(model):
            weight.copy_(_like(name, snapshot.weights[name], weight))
            if f"{name}.{_SHAPED[0]}" in snapshot.moments:
                found = {
                    moment: _like(f"{name}.{moment}", snapshot.moments[f"{name}.{moment}"], weight)
                    for moment in _SHAPED
                }
                # the fused optimiser counts where the weights are
                step = snapshot.moments.get(f"{name}.{_STEP}", torch.tensor(float(snapshot.updates)))
                optimizer.state[weight] = {_STEP: step.to(weight.device), **found}


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor, gathered from all shards."""
    tensor = tensor.detach()
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # a DTensor of FSDP


def _like(name: str, tensor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Put a tensor, read by every process, on the weight's device, cut as it is."""
    if tensor.shape != weight.shape or not tensor.is_floating_point():
        raise CheckpointFault(
            f"The checkpoint's {name} is {tuple(tensor.shape)} of {tensor.dtype}; the model has"
            f" {tuple(weight.shape)} of {weight.dtype}."
        )
    tensor = tensor.to(weight.device)
    if not torch.isfinite(tensor).all():
        raise CheckpointFault(f"The checkpoint's {name} holds values that are not finite.")
    if hasattr(weight, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(tensor, weight.device_mesh, weight.placements, src_data_rank=None)
    return tensor
