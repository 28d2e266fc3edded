"""One model shared by several processes (FSDP2, `fully_shard`).

Each transformer block is one unit. Every process builds the model without weights, cuts it, and
gets its shards from rank 0, the only one that read the files: a host's memory holds one copy of
a model, hardly one for each GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from trainer.train.distributed.process_group import World
from trainer.train.settings import TrainingSpec

Weights = dict[str, torch.Tensor]
Owner = tuple[torch.nn.Module, str]


def skeleton(config: Any, dtype: torch.dtype) -> Any:
    """Return a model whose weights have shapes and no memory.

    Buffers are real: some are computed, never stored.
    """
    from accelerate import init_empty_weights
    from transformers import AutoModelForCausalLM

    with init_empty_weights(include_buffers=False):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.tie_weights()  # emptied one by one, weights that are one became two
    return model


def shard(model: Any, order: TrainingSpec, world: World) -> None:
    """Cut the model into shards, in place.

    Reductions are in float32 whatever the precision.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    dtype = getattr(torch, order.settings.precision)
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    for block in blocks(model):
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def blocks(model: Any) -> list[torch.nn.Module]:
    """Return the transformer's layers.

    They are those that the model's author says must not be split, else the members of the
    longest list. Without blocks the model would be one unit, which each process puts together
    as a whole.
    """
    names = set(getattr(model, "_no_split_modules", None) or ())
    named = [module for module in model.modules() if type(module).__name__ in names]
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
    return named or list(max(lists, key=len, default=()))


def named_weights(model: Any) -> Weights:
    """Return weights and buffers by name, sharing the model's memory.

    A weight used twice has its first name.
    """
    named = (*model.named_parameters(), *model.named_buffers())
    return {name: tensor.detach() for name, tensor in named}


def fill(model: Any, weights: Weights | None, world: World) -> None:
    """Give each process its shards of rank 0's `weights`, one after the other.

    `weights` is None in the other processes.
    """
    from torch.distributed.tensor import distribute_tensor

    def received(name: str, like: torch.Tensor) -> torch.Tensor:
        if weights is None:
            return torch.empty(like.shape, dtype=like.dtype, device=world.device)
        return weights[name].to(world.device, like.dtype)

    for name, owners, weight in _distinct_weights(model):
        whole = received(name, weight)
        _replace(owners, distribute_tensor(whole, weight.device_mesh, weight.placements))
    for name, buffer in model.named_buffers():
        whole = received(name, buffer).contiguous()
        dist.broadcast(whole, src=0)
        buffer.copy_(whole)


def fill_at_random(model: Any, world: World, deviation: float) -> None:
    """Give each process shards of random weights.

    No process ever holds the whole model.
    """
    for name, owners, weight in _distinct_weights(model):
        if weight.is_meta:  # adapters have been made already
            real = torch.empty_like(weight, device=world.device)
            _initial(name, real.to_local(), deviation)
            _replace(owners, real)


def _initial(name: str, weight: torch.Tensor, deviation: float) -> None:
    if weight.dim() > 1:
        weight.normal_(0.0, deviation)
    else:
        weight.fill_(1.0 if name.endswith("weight") else 0.0)  # a norm's scale, or a bias


def _distinct_weights(model: Any) -> Iterator[tuple[str, list[Owner], Any]]:
    """Yield name, owners and value of each weight.

    One that is used twice (tied embeddings) has two owners.
    """
    owners: dict[int, list[Owner]] = {}
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            owners.setdefault(id(weight), []).append((module, name))
    for name, weight in list(model.named_parameters()):
        yield name, owners[id(weight)], weight


def _replace(owners: list[Owner], value: torch.Tensor) -> None:
    learns = getattr(owners[0][0], owners[0][1]).requires_grad
    weight = torch.nn.Parameter(value, requires_grad=learns)
    for module, name in owners:
        module.register_parameter(name, weight)
