"""Why no configuration can be offered, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.domain import config_space, tuning_support
from knowledge.core.domain.catalogue import GIB, Catalogue
from knowledge.core.domain.types import Inventory, Workload
from knowledge.core.domain.wording import in_sentence
from knowledge.core.explain.fitting_nodes import fits, nodes_that_fit
from knowledge.core.recommend.candidates import Candidates
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request
from trainer import recipes

SHORTEST = 128  # tokens a sample below which shortening is no remedy


def why_nothing_fits(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> str:
    """One sentence for what is wrong and one for what to change."""
    four_bits = config_space.why_not_four_bits(request.model_name, request.catalogue)
    if bound["tuning"] == "qlora" and four_bits:
        return four_bits
    if why := tuning_support.explain_unsupported(request.pools, bound["tuning"]):
        return f"{why} Choose the tuning lora, or the job waits until one can."
    if why := _too_many(request, bound["tuning"]):
        return why
    needed = _needed_bytes(space.candidates(request, bound), request.catalogue)
    if needed is None or request.model is None:
        return _no_candidate(request, bound)
    largest = max(pool.memory_bytes for pool in request.pools)
    help_of = _remedies(request, bound, space)
    if fits(request, bound, space):
        return f"By physics this may fit, but hardly any similar run did. {help_of}"
    return (
        f"With {bound['tuning']} this needs about {needed / GIB:.1f} GiB on each GPU at least, and the"
        f" largest registered GPU has {largest / GIB:.1f} GiB. {help_of}"
    )


def beyond_the_nodes(fixed: Mapping[str, Any], inventory: Inventory, catalogue: Catalogue) -> dict[str, str]:
    """Say, by field, which fixed place no nodes give, whatever is trained.

    It is empty where they may, and without nodes unless a GPU model is asked for.
    """
    pools = tuple(replace(pool, offline=()) for pool in inventory.pools)
    data = Workload(rows=0, lengths=())
    request = Request("", None, fixed, data, replace(inventory, pools=pools), catalogue.on(inventory))
    if not request.pools:
        return {"gpu_model": offered_nowhere(request)} if "gpu_model" in fixed else {}
    why = _too_many(request, fixed.get("tuning", "lora"))
    nodes_alone = "number_gpus" not in fixed or fixed.get("number_nodes", 1) > inventory.max_nodes
    return {"number_nodes" if nodes_alone else "number_gpus": why} if why else {}


def offered_nowhere(request: Request) -> str:
    """Say that no node offers such GPUs; empty if one does."""
    if request.pools:
        return ""
    wanted = request.fixed.get("gpu_model")
    if wanted and request.inventory.pools:
        return f"No node in service offers {wanted}; the job will wait until one joins or returns."
    what = f"No registered node offers {wanted}" if wanted else "No node is registered yet"
    return f"{what}; the job will wait until one joins."


def _too_many(request: Request, tuning: str) -> str:
    """Say that no nodes give so many GPUs to one job; empty if some do."""
    limit = request.inventory.max_nodes
    sizes = [tuning_support.node_sizes(pool, tuning) for pool in request.pools]
    if any(config_space.open_bundles(of_pool, request.fixed, limit) for of_pool in sizes):
        return ""
    return _no_such_bundle(request.fixed, limit)


def _no_candidate(request: Request, bound: Mapping[str, Any]) -> str:
    """Nothing at all can be tried: settings that exclude each other, or all GPUs."""
    reason = (
        f"No registered GPUs can run this: they must support the precision {bound.get('precision')}, and"
        f" the effective batch size {bound.get('effective_batch_size')} must be a multiple of their number."
    )
    if "sharding" in request.fixed:
        reason += f" The sharding {recipes.SHARDING_RULE}."
    return reason


def _remedies(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> str:
    """Return the changes that are left, as a sentence.

    A value that holds already, or does not fit either, is no remedy.
    """
    remedies = [
        *_shorter(request, bound, space),
        *_released(request, bound, space),
        *_other_tunings(request, bound, space),
        *(f"a node with {node}" for node in nodes_that_fit(request, bound, space)),
    ] or ["a smaller model"]
    gpus = [pool for pool in request.pools if pool.gpu_model != "cpu"]
    why = tuning_support.explain_unsupported(gpus, "qlora")
    cannot = config_space.why_not_four_bits(request.model_name, request.catalogue)
    if bound["tuning"] != "qlora" and why and not cannot:
        return f"It would fit with {_either(remedies)}. The tuning qlora would help, too, but: {why}"
    return f"It would fit with {_either(remedies)}."


def _shorter(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> list[str]:
    """The longest samples that fit, of halves of the length."""
    length = bound["tokens_per_sample"] // 2
    while length >= SHORTEST:
        if fits(request, {**bound, "tokens_per_sample": length}, space):
            return [f"samples of at most {length:,} tokens"]
        length //= 2
    return []


def _released(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> list[str]:
    """Return the fixed values that keep the job from fitting, each tried by itself.

    Only values of how and where it runs are considered.
    """
    return [
        f"the {in_sentence(name)} left open"
        for name in config_space.DISPATCH
        if name in request.fixed and fits(_without(request, name), bound, space)
    ]


def _without(request: Request, name: str) -> Request:
    return replace(request, fixed={other: value for other, value in request.fixed.items() if other != name})


def _other_tunings(request: Request, bound: Mapping[str, Any], space: SearchSpace) -> list[str]:
    quantization = {"lora": "none", "qlora": "bnb-4bit"}
    return [
        f"the tuning {tuning}"
        for tuning, bits in quantization.items()
        if tuning != bound["tuning"]
        and fits(request, {**bound, "tuning": tuning, "quantization": bits}, space)
    ]


def _needed_bytes(found: Candidates, catalogue: Catalogue) -> float | None:
    """Return the least memory of one GPU with which any candidate would fit.

    Bytes, margin included; None without candidates.
    """
    if not len(found):
        return None
    return float(np.min(cost_model.MEMORY_MARGIN * cost_model.needed(found.columns(catalogue))))


def _either(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _no_such_bundle(fixed: Mapping[str, Any], max_nodes: int) -> str:
    nodes, gpus = fixed.get("number_nodes"), fixed.get("number_gpus")
    if nodes is not None and nodes > max_nodes:
        most = "1" if max_nodes == 1 else f"{max_nodes} or less"
        return (
            f"A job may use at most {_nodes(max_nodes)} here, and you asked for {nodes};"
            f" leave the number of nodes empty or set it to {most}."
        )
    if gpus is None:
        on = _nodes(nodes or max_nodes)
        return f"No {on} of the same GPU model, price and network are registered; choose fewer nodes."
    on = f"up to {max_nodes} nodes" if nodes is None and max_nodes > 1 else _nodes(nodes or max_nodes)
    return f"The registered nodes cannot give {gpus} GPUs to one job on {on}; choose fewer GPUs."


def _nodes(count: int) -> str:
    return "a single node" if count == 1 else f"{count} nodes"
