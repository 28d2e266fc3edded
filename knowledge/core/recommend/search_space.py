"""The space of a search: every configuration that could run a request, each enumerated once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from knowledge.core.domain import catalogue, config_space, method_support
from knowledge.core.domain.types import Config, GpuPool
from knowledge.core.recommend.candidates import Candidates, Sizes
from knowledge.core.recommend.submit_defaults import Request

# Of what is bound at submit only these are part of a configuration.
BOUND = (
    *("method", "precision", "quantization", "tokens_per_sample", "effective_batch_size"),
    *("lora_r", "lora_alpha"),
)


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Candidates on GPUs that the catalogue has, kept for requests that have the same ones."""

    _found: dict[Hashable, Candidates] = field(default_factory=dict)

    def candidates(self, request: Request, bound: Mapping[str, Any]) -> Candidates:
        """All that can be predicted: configurations that keep what is bound and fixed and may be launched."""
        known = request.of_known_gpus().at_dispatch()
        key = known, tuple(bound.get(name) for name in BOUND)
        if key not in self._found:
            self._found[key] = enumerated(known, bound)
        return self._found[key]


def enumerated(request: Request, bound: Mapping[str, Any]) -> Candidates:
    """Every configuration that keeps what is bound and fixed and breaks no launch rule."""
    return Candidates.of(
        (kind, pool, sizes)
        for pool in request.pools
        if _can_compute(pool, bound["precision"])
        for nodes, gpus in config_space.open_bundles(
            method_support.node_sizes(pool, bound["method"]), request.fixed, request.inventory.max_nodes
        )
        if (sizes := _sizes(bound, request.fixed, gpus))
        for kind in _kinds(request, bound, pool, nodes, gpus)
    )


def _sizes(bound: Mapping[str, Any], fixed: Mapping[str, Any], gpus: int) -> list[Sizes]:
    tokens = bound["tokens_per_sample"]
    return [(tokens, *pair) for pair in batches(bound.get("effective_batch_size"), fixed, gpus)]


def _can_compute(pool: GpuPool, precision: str) -> bool:
    """GPUs without bfloat16 units would emulate it; a CPU may."""
    gpu = catalogue.known_gpu(pool.gpu_model)
    return precision != "bfloat16" or gpu is None or gpu.bf16_flops is not None


def _kinds(
    request: Request, bound: Mapping[str, Any], pool: GpuPool, nodes: int, gpus: int
) -> Iterator[Config]:
    """The ways to run on one bundle, one sample at a time."""
    fixed = request.fixed
    for checkpointing in _open(fixed, "gradient_checkpointing", (True, False)):
        for sharding in _open(fixed, "sharding", _shardings(pool, gpus, bound)):
            yield Config(
                model_name=request.model_name,
                method=bound["method"],
                gpu_model=pool.gpu_model,
                number_gpus=gpus,
                number_nodes=nodes,
                tokens_per_sample=bound["tokens_per_sample"],
                per_device_batch_size=1,
                precision=bound["precision"],
                quantization=bound["quantization"],
                lora_r=bound.get("lora_r"),
                lora_alpha=bound.get("lora_alpha"),
                gradient_checkpointing=checkpointing,
                sharding=sharding,
                network=pool.network if nodes > 1 else "none",
                **config_space.OUR_TRAINER,
            )


def batches(effective: int | None, fixed: Mapping[str, Any], gpus: int) -> Iterator[tuple[int, int]]:
    """(per-device batch, accumulation) pairs whose product with the GPUs is the effective batch."""
    if effective is None or effective % gpus:
        return
    samples = effective // gpus
    for batch in config_space.per_device_batches(samples):
        accumulation = samples // batch
        if (
            fixed.get("per_device_batch_size", batch) == batch
            and fixed.get("gradient_accumulation_steps", accumulation) == accumulation
        ):
            yield batch, accumulation


def _open(fixed: Mapping[str, Any], name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (fixed[name],) if name in fixed else values


def _shardings(pool: GpuPool, gpus: int, bound: Mapping[str, Any]) -> tuple[str, ...]:
    if gpus == 1:
        return ("none",)
    sharded = config_space.can_shard(pool.gpu_model, bound["method"], bound["precision"])
    return ("ddp", "fsdp") if sharded else ("ddp",)
