"""The space of a search.

It holds every configuration that could run a request, each enumerated once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from knowledge.core.domain import config_space, tuning_support
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, GpuPool
from knowledge.core.recommend.candidates import Candidates, Sizes
from knowledge.core.recommend.submit_defaults import Request
from trainer.recipes import DEFAULT_RECIPE

# Of what is bound at submit only these are part of a configuration.
BOUND = (
    *("tuning", "precision", "quantization", "tokens_per_sample", "effective_batch_size"),
    *("lora_r", "lora_alpha", "target_modules"),
)


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Candidates on GPUs that the catalogue has.

    They are kept for requests that have the same ones.
    """

    _found: dict[Hashable, Candidates] = field(default_factory=dict)

    def candidates(self, request: Request, bound: Mapping[str, Any]) -> Candidates:
        """Return all configurations that can be predicted for a request.

        They keep the bound and fixed values and may be launched.
        """
        known = request.of_known_gpus().at_dispatch()
        key = known, tuple(bound.get(name) for name in BOUND)
        if key not in self._found:
            self._found[key] = enumerated(known, bound)
        return self._found[key]


def enumerated(request: Request, bound: Mapping[str, Any]) -> Candidates:
    """Enumerate the configurations that keep the bound and fixed values.

    Configurations that break a launch rule are left out.
    """
    found = (
        (kind, pool, sizes)
        for pool in request.pools
        if _can_compute(pool, bound["precision"], request.catalogue)
        for nodes, gpus in config_space.open_bundles(
            tuning_support.node_sizes(pool, bound["tuning"]), request.fixed, request.inventory.max_nodes
        )
        if (sizes := _sizes(bound, request.fixed, gpus))
        for kind in _kinds(request, bound, pool, nodes, gpus)
    )
    return Candidates.of(found, request.catalogue)


def _sizes(bound: Mapping[str, Any], fixed: Mapping[str, Any], gpus: int) -> list[Sizes]:
    tokens = bound["tokens_per_sample"]
    return [(tokens, *pair) for pair in batches(bound.get("effective_batch_size"), fixed, gpus)]


def _can_compute(pool: GpuPool, precision: str, catalogue: Catalogue) -> bool:
    """GPUs without bfloat16 units would emulate it; a CPU may."""
    gpu = catalogue.known_gpu(pool.gpu_model)
    return precision != "bfloat16" or gpu is None or gpu.bf16_flops is not None


def _kinds(
    request: Request, bound: Mapping[str, Any], pool: GpuPool, nodes: int, gpus: int
) -> Iterator[Config]:
    """The ways to run on one bundle, one sample at a time."""
    tried = [
        (request.fixed[name],)
        if name in request.fixed
        else config_space.candidate_values(name, pool.gpu_model, gpus, bound)
        for name in config_space.SETTINGS
    ]
    for settings in product(*tried):
        yield Config(
            model_name=request.model_name,
            tuning=bound["tuning"],
            recipe=None if request.recipe == DEFAULT_RECIPE.name else request.recipe,
            gpu_model=pool.gpu_model,
            number_gpus=gpus,
            number_nodes=nodes,
            tokens_per_sample=bound["tokens_per_sample"],
            per_device_batch_size=1,
            precision=bound["precision"],
            quantization=bound["quantization"],
            lora_r=bound.get("lora_r"),
            lora_alpha=bound.get("lora_alpha"),
            network=pool.network if nodes > 1 else "none",
            **{**config_space.OUR_TRAINER, **_placement(bound)},
            **dict(zip(config_space.SETTINGS, settings, strict=True)),
        )


def _placement(bound: Mapping[str, Any]) -> dict[str, Any]:
    """Where adapters are, if anything was chosen; tunings without adapters have none."""
    chosen = bound.get("target_modules")
    return {"target_modules": chosen} if chosen else {}


def batches(effective: int | None, fixed: Mapping[str, Any], gpus: int) -> Iterator[tuple[int, int]]:
    """Yield (per-device batch, accumulation) pairs.

    Their product with the GPUs is the effective batch.
    """
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
