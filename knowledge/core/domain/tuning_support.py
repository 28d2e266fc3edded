"""Limits on where a tuning can be trained.

Nodes report what they lack; launch rules state what CPU slots cannot do.
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.domain import config_space
from knowledge.core.domain.types import GpuPool, Unsupported

SAID = 3  # reasons in a sentence


def unsupported(pool: GpuPool, tuning: str) -> Unsupported | None:
    """Which nodes of the pool cannot train by the tuning; None if all can."""
    if pool.gpu_model == "cpu" and tuning in config_space.QUANTIZED:
        return pool.cannot_train.get(tuning, Unsupported(why="CPU slots: 4-bit training needs a GPU"))
    return pool.cannot_train.get(tuning)


def node_sizes(pool: GpuPool, tuning: str) -> tuple[int, ...]:
    """GPUs of each node of the pool that can train by the tuning."""
    lacking = unsupported(pool, tuning)
    return pool.node_sizes if lacking is None else lacking.others


def explain_unsupported(pools: Sequence[GpuPool], tuning: str) -> str:
    """Explain in a sentence why none of the pools can train by the tuning.

    The text is empty if one can, or if there is no pool.
    """
    lacks = [unsupported(pool, tuning) for pool in pools]
    found = [lacking.why for lacking in lacks if lacking is not None and not lacking.others]
    if not found or len(found) < len(lacks):
        return ""
    return f"No registered node can train {tuning} ({'; '.join(list(dict.fromkeys(found))[:SAID])})."
