"""Why no configuration can be offered, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import hardware
from knowledge.core.domain import config_space, method_support
from knowledge.core.domain.catalogue import GIB
from knowledge.core.recommend.candidates import Candidates
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request


def why_nothing_fits(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> str:
    """One sentence for what is wrong and one for what to change."""
    limit = request.inventory.max_nodes
    if bound["method"] == "qlora" and (why := config_space.why_not_four_bits(request.model_name)):
        return why
    if why := method_support.explain_unsupported(request.pools, bound["method"]):
        return f"{why} Choose the method lora, or the job waits until one can."
    sizes = [method_support.node_sizes(pool, bound["method"]) for pool in request.pools]
    if not any(config_space.open_bundles(of_pool, request.fixed, limit) for of_pool in sizes):
        return _no_such_bundle(request.fixed, limit)
    needed = _needed_bytes(space.candidates(request, bound))
    if needed is None or request.model is None:
        return _no_candidate(request, bound)
    largest = max(pool.memory_bytes for pool in request.pools)
    help_of = _remedies(request, bound, space)
    if _fits(request, bound, space):
        return f"Out of reach: it may fit by physics, but hardly any run like it did. {help_of}"
    return (
        f"Out of reach: this needs about {needed / GIB:.1f} GiB on each GPU and the largest registered one"
        f" has {largest / GIB:.1f} GiB. {help_of}"
    )


def _no_candidate(request: Request, bound: Mapping[str, Any]) -> str:
    """Nothing at all can be tried: settings that exclude each other, or all GPUs."""
    reason = (
        f"No registered GPUs can run this: the precision {bound.get('precision')} must be one they have, and"
        f" the effective batch {bound.get('effective_batch_size')} a multiple of their number."
    )
    if "sharding" in request.fixed:
        reason += " The sharding none is for one GPU; ddp and fsdp are for several."
    return reason


def _remedies(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> str:
    """Changes that are left: a value that holds already, or does not fit either, is no remedy."""
    remedies = [
        "a shorter tokens_per_sample",
        *_released(request, bound, space),
        *_other_methods(request, bound, space),
    ]
    gpus = [pool for pool in request.pools if pool.gpu_model != "cpu"]
    why = method_support.explain_unsupported(gpus, "qlora")
    if bound["method"] != "qlora" and why and not config_space.why_not_four_bits(request.model_name):
        return f"Less is needed with {_either(remedies)}, and would be with the method qlora: {why}"
    return f"Less is needed with {_either(remedies if remedies[1:] else [*remedies, 'a smaller model'])}."


def _released(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> list[str]:
    """Values of how and where it runs that the user fixed and that keep it from fitting, each by itself."""
    return [
        f"{name} left open"
        for name in config_space.DISPATCH
        if name in request.fixed and _fits(_without(request, name), bound, space)
    ]


def _without(request: Request, name: str) -> Request:
    return replace(request, fixed={other: value for other, value in request.fixed.items() if other != name})


def _other_methods(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> list[str]:
    quantization = {"lora": "none", "qlora": "bnb-4bit"}
    return [
        f"the method {method}"
        for method, bits in quantization.items()
        if method != bound["method"]
        and _fits(request, {**bound, "method": method, "quantization": bits}, space)
    ]


def _fits(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> bool:
    """Would any candidate fit where it is, by the memory prior?"""
    found = space.candidates(request, bound)
    fitting = len(found) and np.any(cost_model.fits(found.columns(hardware(request.inventory))) >= 1)
    return request.model is not None and bool(fitting)


def _needed_bytes(found: Candidates) -> float | None:
    """The least memory of one GPU with which any candidate would fit, margin included; None without any."""
    if not len(found):
        return None
    return float(np.min(cost_model.MEMORY_MARGIN * cost_model.memory(found.columns()).total))


def _either(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _no_such_bundle(fixed: Mapping[str, Any], max_nodes: int) -> str:
    nodes, gpus = fixed.get("number_nodes"), fixed.get("number_gpus")
    if nodes is not None and nodes > max_nodes:
        most = "1" if max_nodes == 1 else f"{max_nodes} or less"
        return (
            f"A job may use {_nodes(max_nodes)} at most here and number_nodes is {nodes};"
            f" leave it out or set it to {most}."
        )
    if gpus is None:
        on = _nodes(nodes or max_nodes)
        return f"No {on} of the same GPU model, price and network are registered; set number_nodes to fewer."
    on = f"up to {max_nodes} nodes" if nodes is None and max_nodes > 1 else _nodes(nodes or max_nodes)
    return f"The registered nodes cannot give {gpus} GPUs to one job on {on}; set number_gpus to fewer."


def _nodes(count: int) -> str:
    return "a single node" if count == 1 else f"{count} nodes"
