"""Nodes that nobody has registered and on which a request would fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.domain.types import GpuPool, Inventory
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values

# Of rising memory, and for rent in many places.
USUAL = ("L4", "L40S", "A100-SXM4-80GB", "H200-SXM5-141GB", "B300-SXM-288GB")
COUNTS = (1, 2, 4, 8)
PLACE = ("gpu_model", "number_gpus", "number_nodes")


def fits(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> bool:
    """Would any candidate fit where it is, by the memory prior?"""
    found = space.candidates(request, bound)
    fitting = len(found) and np.any(cost_model.fits(found.columns(request.catalogue)) >= 1)
    return request.model is not None and bool(fitting)


def nodes_that_fit(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> list[str]:
    """The smallest such node of a registered GPU model, and of a usual one.

    Each comes with the settings that are assumed there and that nobody fixed: `4 × L40S by the tuning lora`.
    """
    largest = {pool.gpu_model: max(pool.node_sizes) for pool in request.pools if pool.gpu_model != "cpu"}
    more = [pool for pool in _ladder(request, tuple(largest)) if pool.node_sizes[0] > largest[pool.gpu_model]]
    other = _ladder(request, tuple(name for name in USUAL if name not in largest))
    found = (
        next((p for p in pools if _fits_on(request, bound, p, space)), None) for pools in (more, list(other))
    )
    return [
        f"{pool.node_sizes[0]} × {pool.gpu_model}{_assumed(request, bound, pool)}" for pool in found if pool
    ]


def _ladder(request: Request, names: tuple[str, ...]) -> Iterator[GpuPool]:
    """One node of each model and number, the least memory in all first."""
    known = [gpu for name in names if (gpu := request.catalogue.known_gpu(name))]
    sizes = [(count * gpu.capacity_bytes, count, gpu) for gpu in known for count in COUNTS]
    for _, count, gpu in sorted(sizes, key=lambda size: size[:2]):
        yield GpuPool(gpu_model=gpu.gpu_model, node_sizes=(count,), memory_bytes=int(gpu.capacity_bytes))


def _fits_on(request: Request, bound: Mapping[str, Any], pool: GpuPool, space: SearchSpace) -> bool:
    """Would it fit on that node?

    Every value that is not fixed is chosen as it would be there.
    """
    there = _on(request, pool)
    bound = _chosen(there) | {"effective_batch_size": bound["effective_batch_size"]}
    return fits(there, bound, space)


def _on(request: Request, pool: GpuPool) -> Request:
    fixed = {name: value for name, value in request.fixed.items() if name not in PLACE}
    return replace(request, fixed=fixed, inventory=Inventory(pools=(pool,)))


def _chosen(request: Request) -> dict[str, Any]:
    return {name: choice.value for name, choice in choose_submit_values(request).items()}


def _assumed(request: Request, bound: Mapping[str, Any], pool: GpuPool) -> str:
    """Say which tuning and precision are assumed on that node.

    The tuning is said where it is not fixed, and the precision where it is another one there.
    """
    chosen = _chosen(_on(request, pool))
    tuning = "" if {"tuning", "quantization"} & request.fixed.keys() else f" by the tuning {chosen['tuning']}"
    return tuning + ("" if chosen["precision"] == bound["precision"] else f" in {chosen['precision']}")
