"""The training processes of one attempt.

It tells which one this process is, sums over all, and wraps the model. One process is one GPU
or CPU slot. The processes find each other through a file on one node and through a store of
rank 0 on several (`rendezvous`). Gloo connects CPU slots, NCCL GPUs. DDP and FSDP2 (`sharding`)
are tested over gloo on CPU slots; NCCL itself needs GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from trainer.train.distributed.rendezvous import meet
from trainer.train.errors import NodeFault, Stopped
from trainer.train.settings import TrainingSpec

# Groups that were left. The last reference to one must not go while Python runs: gloo's destructor then joins
# a thread that may wait for the lock which the joining thread holds. `process.leave` ends both.
_LEFT: list[Any] = []


@dataclass(frozen=True, slots=True)
class World:
    """This process among all. Rank 0 writes what the agent reads."""

    rank: int
    size: int
    device: torch.device

    @property
    def main(self) -> bool:
        return self.rank == 0

    @property
    def first_here(self) -> bool:
        """One process of each node: it does what is needed once for a node's disk."""
        return os.environ.get("LOCAL_RANK", "0") == "0"

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.any(False)

    def sum(self, *values: float) -> list[float]:
        """Each value summed over all processes; every process must call."""
        return self._reduce(values, "sum")

    def max(self, *values: float) -> list[float]:
        """Each value's maximum over all processes; every process must call."""
        return self._reduce(values, "max")

    def any(self, flag: bool) -> bool:
        """Is the flag set in any process? Every process must call."""
        return self.max(float(flag))[0] > 0

    def from_main(self, value: Any) -> Any:
        """Rank 0's value; every process must call."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, device=self.device)
        return values[0]

    def _reduce(self, values: tuple[float, ...], how: str) -> list[float]:
        if self.size == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(numbers, dist.ReduceOp.SUM if how == "sum" else dist.ReduceOp.MAX)
        return numbers.tolist()


@contextmanager
def joined(order: TrainingSpec, stopped: Callable[[], bool]) -> Iterator[World]:
    """Meet the other processes, and leave them at the end.

    RANK and WORLD_SIZE name them as torchrun does.
    stopped: was a stop requested?
    Raises Stopped if so before all are there, and PeersMissing.
    """
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    world = World(rank, size, _device(order))
    torch.set_num_threads(max(1, order.threads))
    if size > 1:
        _meet(order, world, stopped)
    try:
        yield world
    except Stopped:
        _leave(world)
        raise
    _leave(world)


def _leave(world: World) -> None:
    """Leave the other processes; only for when all processes end in order.

    After an error of one, the others would wait for it.
    """
    if world.size > 1:
        dist.barrier()
        _LEFT.append(dist.group.WORLD)
        dist.destroy_process_group()


def _device(order: TrainingSpec) -> torch.device:
    if order.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise NodeFault("torch finds no usable CUDA GPU on this node; check the driver and the torch build.")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def _meet(order: TrainingSpec, world: World, stopped: Callable[[], bool]) -> None:
    """Meet the other processes.

    The limit is as long as the agent waits for a sign of life: while rank 0 writes a large
    model, the others are in a collective, and NCCL's own limit of ten minutes would end them.
    """
    cuda = world.device.type == "cuda"
    shared = {
        "backend": "nccl" if cuda else "gloo",
        "rank": world.rank,
        "world_size": world.size,
        "timeout": timedelta(seconds=order.spec.hang_after_s),
        "device_id": world.device if cuda else None,
    }
    if order.spec.nodes > 1:
        store = meet(order, world.rank, world.size, stopped)
    else:
        store = dist.FileStore(os.environ["FORETUNE_STORE"], world.size)
    dist.init_process_group(store=store, **shared)


def is_sharded(order: TrainingSpec, world: World) -> bool:
    """Tell whether several processes share one copy of the model.

    The other way is a copy for each.
    """
    return order.settings.sharding == "fsdp" and world.size > 1


def replicate(model: Any, world: World) -> Any:
    """Return the model as the forward pass of training calls it.

    `model` itself keeps its parameters' names.
    """
    if world.size == 1:
        return model
    return torch.nn.parallel.DistributedDataParallel(
        model,
        device_ids=[world.device.index] if world.device.type == "cuda" else None,
        broadcast_buffers=False,
        gradient_as_bucket_view=True,  # else gradients lie in memory twice
    )


@contextmanager
def gradients_stay_local(forward: Any, local: bool) -> Iterator[None]:
    """Accumulate gradients without talking to other processes.

    The last micro-batch of a step reduces. This does not hold with FSDP: a process would hold
    whole gradients until then, which sharding is to avoid.
    """
    if isinstance(forward, torch.nn.parallel.DistributedDataParallel) and local:
        with forward.no_sync():
            yield
        return
    yield
