"""Where a method can be trained at all: nodes say what they lack, launch rules what CPU slots cannot."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core import space
from knowledge.core.types import Pool

SAID = 3  # reasons in a sentence


def obstacle(pool: Pool, method: str) -> str:
    """Why no node of the pool can train by the method; empty if all can."""
    if pool.gpu_model == "cpu" and method in space.QUANTIZED:
        return pool.cannot_train.get(method, "CPU slots: 4-bit training needs a GPU")
    return pool.cannot_train.get(method, "")


def untrainable(pools: Sequence[Pool], method: str) -> str:
    """A sentence on why none of the pools can train by the method; empty if one can, or if there is none."""
    found = [obstacle(pool, method) for pool in pools]
    if not found or not all(found):
        return ""
    return f"No registered node can train {method} ({'; '.join(list(dict.fromkeys(found))[:SAID])})."
