"""The bytes that a layer of LitGPT's own models keeps for its backward pass.

LitGPT writes every architecture anew: one layer makes queries, keys and values, keys and values are copied
for all heads, and adapters drop some of their inputs. Counted in 16 bits, from the source of version 0.4.9
(`litgpt/model.py`, `litgpt/lora.py`); `benchmarks/trainer/litgpt_terms.py` has what autograd saves of it.
"""

from __future__ import annotations

from typing import NamedTuple

from knowledge.core.domain import layer_kinds
from knowledge.core.domain.adapted_layers import ALL_LINEAR, QUERY_VALUE
from knowledge.core.domain.catalogue import Model

WIDTH = 2.0
DROPPED = 3.0  # bytes of an adapter's input: what dropout leaves of it, and its mask
CAPPED = ("gemma2",)  # families whose scores pass through a tanh, which no fused attention computes


class LitgptLayer(NamedTuple):
    """Bytes of a token that one layer keeps.

    kept: whatever learns, without scores. inputs: of all linear layers, each once. full: what a layer keeps
    besides where its weights learn. dropped: what adapters keep besides; ranks: numbers times the rank.
    """

    kept: float
    inputs: float
    full: float
    dropped: float
    ranks: float


def layer_of(model: Model, placed: str) -> LitgptLayer:
    """The layer's bytes; `placed` is where adapters are."""
    kind, width = layer_kinds.kind_of(model), model.mlp_width
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    gates = 2 if model.mlp_gated else 1
    norms = (4.0 if kind.root_mean_square else WIDTH) * kind.norm_inputs * model.hidden
    # A value is a view of the whole projection, unless it is copied for all heads; a single one is not.
    held = 4 * queries + (2 * keys if model.kv_heads in (1, model.heads) else 0)
    attention = WIDTH * (held - (queries if _is_capped(model) else 0))
    inside = WIDTH * (3 * width if model.mlp_gated else width)
    inputs = WIDTH * (kind.inputs * model.hidden + queries + width)
    adapted = {
        ALL_LINEAR: (1 + gates) * model.hidden + queries + width,
        QUERY_VALUE: model.hidden,
    }.get(placed, model.hidden + queries)
    spread = WIDTH * (queries + keys) if placed == QUERY_VALUE else 0.0  # put between zeros for keys
    return LitgptLayer(
        kept=norms + attention + inside,
        inputs=inputs,
        full=inputs + (4.0 * kind.norms * model.hidden if kind.root_mean_square else 0.0),
        dropped=DROPPED * adapted + spread,
        ranks=WIDTH * {ALL_LINEAR: 5 + gates, QUERY_VALUE: 2}.get(placed, 4),
    )


def _is_capped(model: Model) -> bool:
    return model.architecture in CAPPED
