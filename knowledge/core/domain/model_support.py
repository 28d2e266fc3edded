"""Limits on where a base model can be loaded.

A node that may not download models reports which it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from knowledge.core.domain.offline_node import OfflineNode
from knowledge.core.domain.types import GpuPool

NAMED = 3  # nodes in a sentence


def loading(pools: Iterable[GpuPool], model: str) -> tuple[GpuPool, ...]:
    """The pools with those nodes alone that can load the model."""
    left = (_without(pool, lacking) if (lacking := _lacking(pool, model)) else pool for pool in pools)
    return tuple(pool for pool in left if pool.node_sizes)


def explain_unloadable(pools: Sequence[GpuPool], model: str) -> str:
    """Say why no node of the pools can load the model, with the remedy.

    The text is empty if one can, or if there is no pool.
    """
    if not pools or loading(pools, model):
        return ""
    names = sorted({node.name for pool in pools for node in _lacking(pool, model)})
    lacks = f"{named(names)} {'does' if len(names) == 1 else 'do'} not hold it and may not download it"
    return (
        f"No node in service can load {model}: {lacks}. An administrator starts the agent with --online, or"
        f" puts the model into {model} in its models folder."
    )


def named(nodes: Sequence[str]) -> str:
    """Some names of nodes, and how many more there are."""
    more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
    return ", ".join(nodes[:NAMED]) + more


def _lacking(pool: GpuPool, model: str) -> list[OfflineNode]:
    return [node for node in pool.offline if not node.loads(model)]


def _without(pool: GpuPool, lacking: Sequence[OfflineNode]) -> GpuPool:
    cannot_train = {
        tuning: replace(
            unsupported,
            others=_less(
                unsupported.others, [node.gpus for node in lacking if tuning not in node.cannot_train]
            ),
        )
        for tuning, unsupported in pool.cannot_train.items()
    }
    sizes = _less(pool.node_sizes, [node.gpus for node in lacking])
    left = tuple(node for node in pool.offline if node not in lacking)
    return replace(pool, node_sizes=sizes, cannot_train=cannot_train, offline=left)


def _less(sizes: Iterable[int], gone: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted((Counter(sizes) - Counter(gone)).elements()))
