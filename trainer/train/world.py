"""The training processes of one attempt: who this one is, sums over all, and the wrapping of the model.

One process is one GPU or CPU slot. The processes find each other through a file on one node and through
`spec.rendezvous` (host:port of rank 0) on several. Gloo connects CPU slots, NCCL GPUs. DDP and FSDP2
(`fully_shard`) are tested over gloo on CPU slots; NCCL itself needs GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from trainer.train.errors import Stopped, TrainError
from trainer.train.settings import Order


@dataclass(frozen=True, slots=True)
class World:
    """This process among all. Rank 0 writes what the agent reads."""

    rank: int
    size: int
    device: torch.device

    @property
    def main(self) -> bool:
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """Each value summed over all processes; every process must call."""
        return self._reduce(values, "sum")

    def max(self, *values: float) -> list[float]:
        """Each value's maximum over all processes; every process must call."""
        return self._reduce(values, "max")

    def any(self, flag: bool) -> bool:
        """Is the flag set in any process? Every process must call."""
        return self.max(float(flag))[0] > 0

    def _reduce(self, values: tuple[float, ...], how: str) -> list[float]:
        if self.size == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(numbers, dist.ReduceOp.SUM if how == "sum" else dist.ReduceOp.MAX)
        return numbers.tolist()


@contextmanager
def joined(order: Order) -> Iterator[World]:
    """Meet the other processes, named by RANK and WORLD_SIZE as torchrun does; leave them at the end."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    world = World(rank, size, _device(order))
    torch.set_num_threads(max(1, order.threads))
    if size > 1:
        _meet(order, world)
    try:
        yield world
    except Stopped:
        _leave(world)
        raise
    _leave(world)


def _leave(world: World) -> None:
    """Only when all processes end in order: after an error of one, the others would wait for it."""
    if world.size > 1:
        dist.barrier()
        dist.destroy_process_group()


def _device(order: Order) -> torch.device:
    if order.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise TrainError("torch finds no usable CUDA GPU on this node; check the driver and the torch build.")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def _meet(order: Order, world: World) -> None:
    backend = "gloo" if world.device.type == "cpu" else "nccl"
    if order.spec.nodes > 1:
        address = f"tcp://{order.spec.rendezvous}"
        dist.init_process_group(backend, init_method=address, rank=world.rank, world_size=world.size)
    else:
        store = dist.FileStore(os.environ["FORETUNE_STORE"], world.size)
        dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size)


def wrap(model: Any, order: Order, world: World) -> Any:
    """The model as the forward pass of training calls it; `model` itself keeps its parameters' names."""
    if world.size == 1:
        return model
    if order.settings.sharding == "fsdp":
        _shard(model, order, world)
        return model
    devices = [world.device.index] if world.device.type == "cuda" else None
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=devices, broadcast_buffers=False)


def _shard(model: Any, order: Order, world: World) -> None:
    """FSDP2: each transformer block is one unit. Reductions are in float32 whatever the precision."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    dtype = getattr(torch, order.settings.precision)
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    blocks = set(getattr(model, "_no_split_modules", None) or ())
    for module in model.modules():
        if type(module).__name__ in blocks:
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


@contextmanager
def gradients_stay_local(forward: Any, local: bool) -> Iterator[None]:
    """Accumulate without talking to other processes; the last micro-batch of a step reduces."""
    if isinstance(forward, torch.nn.parallel.DistributedDataParallel) and local:
        with forward.no_sync():
            yield
        return
    if hasattr(forward, "set_requires_gradient_sync"):
        forward.set_requires_gradient_sync(not local)
    yield
