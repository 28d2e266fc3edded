"""Bytes that FSDP holds of frozen layers' inputs, by variant and place of checkpointing.

    .venv-train/bin/python -m benchmarks.trainer.frozen_layers

A stack of frozen layers with an adapter each, wrapped by PyTorch's own FSDP for two GPUs of which one exists:
collectives do nothing. Checkpointing is around each unit, as in transformers before 4.52, or within it. The
most that is allocated in a backward pass is compared between two depths, so that a layer's share is left, in
inputs of a layer: one where only inputs are kept, two where their gradients stay beside them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import distributed, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

from benchmarks.trainer.caching_allocator import Event, events_of

HIDDEN, RANK, TOKENS = 64, 4, 8192
SHALLOW, DEEP = 4, 12


class Layer(nn.Module):
    """A frozen weight and an adapter, perhaps checkpointed from within."""

    def __init__(self, variant: bool | None) -> None:
        super().__init__()
        self.variant = variant
        self.frozen = nn.Linear(HIDDEN, HIDDEN, bias=False).requires_grad_(False)
        self.adapter = Adapter()

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        if self.variant is None:
            return self.work(given)
        return checkpoint(self.work, given, use_reentrant=self.variant)

    def work(self, given: torch.Tensor) -> torch.Tensor:
        return given + torch.tanh(self.frozen(given) + self.adapter(given))


class Adapter(nn.Module):
    """Two weights that learn, a unit of their own as in peft."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(HIDDEN, RANK, bias=False), nn.Linear(RANK, HIDDEN, bias=False)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(given))


class Stack(nn.Module):
    """Layers one after the other, perhaps checkpointed from without."""

    def __init__(self, depth: int, around: Callable[..., torch.Tensor], within: bool | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(within) for _ in range(depth))
        self.around = around

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            given = self.around(layer, given)
        return given


def _plain(layer: nn.Module, given: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = layer(given)
    return found


def highest(events: list[Event]) -> int:
    """The most bytes allocated at a time."""
    held: dict[int, int] = {}
    now = most = 0
    for address, size in events:
        now += size if size > 0 else -held.pop(address, 0)
        if size > 0:
            held[address] = size
        most = max(most, now)
    return most


def allocated(depth: int, *, reentrant: bool, within: bool) -> int:
    """The most bytes of a forward and a backward pass."""
    around = _plain if within else functools.partial(checkpoint, use_reentrant=reentrant)
    model = FullyShardedDataParallel(
        Stack(depth, around, reentrant if within else None),
        auto_wrap_policy=ModuleWrapPolicy({Layer, Adapter}),
        device_id=torch.device("cpu"),
        use_orig_params=True,
    )
    given = torch.randn(TOKENS, HIDDEN, requires_grad=True)

    def step() -> None:
        model(given).sum().backward()

    return highest(events_of(step))


def inputs_a_layer(*, reentrant: bool, within: bool) -> float:
    """Bytes that another layer adds, in inputs of a layer."""
    shallow, deep = (allocated(depth, reentrant=reentrant, within=within) for depth in (SHALLOW, DEEP))
    return (deep - shallow) / (DEEP - SHALLOW) / (4 * TOKENS * HIDDEN)


def main() -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    print("| checkpointing | around the unit | within it |\n| --- | --- | --- |")
    for name, reentrant in (("older variant", True), ("other variant", False)):
        found = [inputs_a_layer(reentrant=reentrant, within=within) for within in (False, True)]
        print(f"| {name} | {found[0]:.2f} | {found[1]:.2f} |")


if __name__ == "__main__":
    main()
