"""The tensors that a decoder layer keeps for its backward pass, by architecture.

Read off what autograd saves of each architecture (`benchmarks/knowledge/memory_terms.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from knowledge.core.domain import adapted_layers
from knowledge.core.domain.adapted_layers import ALL_LINEAR, ONE_QUERY_LAYER, QUERY_VALUE
from knowledge.core.domain.catalogue import Model

# MLP-wide tensors that the activation and its products keep.
GATED, RELU, GELU, COMPOSED_GELU, CLAMPED = 4, 1, 2, 5, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """How a layer is built; the defaults are Llama's.

    norms: norms over the hidden width.
    inputs: distinct tensors of the hidden width that linear layers read.
    root_mean_square: such norms compute in float32 and keep that copy of their input.
    scaled: norms have weights.
    float32_scale: these are applied in float32.
    query_key_norm: queries and keys are normed, too.
    rotated: positions turn queries and keys, which are then held beside their projections.
    partly_rotated: heads are put together from turned and other parts; attention's output is copied.
    capped: scores pass through a tanh.
    narrow_scores: probabilities are as wide as the computation, and no copy of wider ones.
    uncast_scores: the same, though without a word on their width.
    wide_heads: eager attention multiplies queries and keys in float32.
    plain: MLP-wide tensors kept where the MLP has no gate.
    of_experts: those kept within a chosen expert, the input of its last layer among them.
    gated_share: what shared experts give is multiplied by a gate of theirs.
    dropped: tensors of the hidden width of which a share is dropped, as the published config.json say.
    dropped_scores: so is a share of eager attention's scores.
    """

    norms: int = 2
    norm_inputs: int = 2
    inputs: int = 2
    root_mean_square: bool = True
    scaled: bool = True
    float32_scale: bool = False
    query_key_norm: bool = False
    rotated: bool = True
    partly_rotated: bool = False
    capped: bool = False
    narrow_scores: bool = False
    uncast_scores: bool = False
    wide_heads: bool = False
    plain: int = GELU
    of_experts: int = GATED
    gated_share: bool = False
    dropped: int = 0
    dropped_scores: bool = False


_LAYER_NORM = LayerKind(root_mean_square=False)
_PARTLY_ROTATED = replace(_LAYER_NORM, partly_rotated=True)
_PARALLEL = LayerKind(
    root_mean_square=False, norms=1, norm_inputs=1, inputs=1, partly_rotated=True, plain=COMPOSED_GELU
)
_GPTJ = replace(_PARALLEL, wide_heads=True)
_DROPPING = LayerKind(root_mean_square=False, rotated=False, dropped=2)
_GPT2 = replace(_DROPPING, plain=COMPOSED_GELU, uncast_scores=True, dropped_scores=True)
KINDS: Mapping[str, LayerKind] = {
    "bloom": LayerKind(root_mean_square=False, rotated=False),
    "codegen": _GPTJ,
    "cohere": LayerKind(norms=1, inputs=1, float32_scale=True),
    "cohere2": LayerKind(norms=1, inputs=1, float32_scale=True),
    "falcon": LayerKind(root_mean_square=False, norms=1, norm_inputs=1, inputs=1),
    "gemma": LayerKind(float32_scale=True),
    "gemma2": LayerKind(norms=4, norm_inputs=4, float32_scale=True, capped=True),
    "gemma3": LayerKind(norms=4, norm_inputs=4, float32_scale=True, query_key_norm=True),
    "gpt2": _GPT2,
    "gptj": _GPTJ,
    "gpt_oss": LayerKind(float32_scale=True, narrow_scores=True, of_experts=CLAMPED),
    "gpt_bigcode": replace(_DROPPING, dropped_scores=True),
    "gpt_neox": LayerKind(root_mean_square=False, norm_inputs=1, partly_rotated=True),
    "mpt": LayerKind(root_mean_square=False, rotated=False),
    "nemotron": _PARTLY_ROTATED,
    "olmo": LayerKind(scaled=False),
    "olmo2": LayerKind(float32_scale=True, query_key_norm=True),
    "olmoe": LayerKind(query_key_norm=True),
    "persimmon": replace(_PARTLY_ROTATED, query_key_norm=True),
    "opt": replace(_DROPPING, plain=RELU),
    "phi3": LayerKind(partly_rotated=True),
    "phi": _PARALLEL,
    "qwen2_moe": LayerKind(gated_share=True),
    "qwen3": LayerKind(query_key_norm=True),
    "qwen3_moe": LayerKind(query_key_norm=True),
    "phimoe": _LAYER_NORM,
    "starcoder2": replace(_LAYER_NORM, dropped=2, dropped_scores=True),
    "stablelm": _PARTLY_ROTATED,
}
# Families of which transformers (5.23) has eager attention alone.
EAGER_ALONE = frozenset({"bloom", "codegen", "gemma2", "gpt_neo", "gpt_oss", "gptj", "mpt"})
KEPT = (
    "float32",
    "residual",
    "learnt",
    "learnt_heads",
    "learnt_float32",
    "inputs",
    "router",
    "router_copies",
    "copies",
    "attention",
    "eager_attention",
    "outputs",
    "result",
    "mlp",
    "product",
    "relu",
    "experts",
    "frozen_experts",
    "capped",
    "narrow_scores",
    "uncast_scores",
    "wide_heads",
    "cast_norms",
    "cast_heads",
    "cast_powers",
    "views",
    "masks",
    "score_masks",
    "sent",
)
"""The elements that a layer keeps for each token.

float32: inputs of norms that compute in float32.
residual: inputs of other norms, as wide as the residual stream.
learnt, learnt_heads: what the weights of norms learn from, as wide as the residual stream and as
the computation; learnt_float32: the same where such weights are applied in float32.
inputs: inputs of linear layers, each once; router: that of a router whose experts are the whole MLP;
router_copies: copies for router and gate beside shared experts, where they learn;
copies: inputs with a copy for each layer that reads them.
attention: queries, keys, values and their result, without scores; eager_attention: the same where
keys and values are copied for all heads; outputs: the copy of the result, if there is one;
result: the result as input of the layer behind attention.
mlp: within the MLP that every token passes through; product: the input of its last layer, if kept beside;
relu: that input where the activation keeps it, and the adapter a copy.
experts, frozen_experts: within the chosen experts, with what is gathered for them and what they give,
where they learn and where they do not.
capped: heads whose scores are kept once more;
narrow_scores: those without any in float32 beside 16-bit weights;
uncast_scores: those without any in float32 unless autocast makes them;
wide_heads: queries and keys that eager attention casts to float32.
cast_norms: inputs of norms that autocast on GPUs computes in float32, each with a copy of its own;
cast_heads: queries and keys in such norms, which are parts of one tensor with the values;
cast_powers: MLP-wide tensors whose powers it computes so.
views: of attention, what is held beside the values since these are a view of it;
masks: elements of which a share is dropped, with a mask of a byte each;
score_masks: heads of whose scores eager attention drops a share so;
sent: what is gathered for the chosen experts, of each token once for each.
"""


def kept(model: Model, placed: str = ALL_LINEAR) -> tuple[float, ...]:
    """Return the elements that one layer keeps for each token, as KEPT lists them.

    placed: where adapters are; without adapters every linear layer keeps its input.
    """
    kind = kind_of(model)
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    values, ranks = _of_values(model), model.query_rank + model.key_rank
    heads = (queries + keys) if kind.query_key_norm else ranks
    dense, chosen = (
        (model.shared_mlp_width, model.experts_per_token) if model.experts else (model.mlp_width, 0)
    )
    routed = bool(chosen) and not dense
    rms = kind.root_mean_square
    scaled = kind.norms * model.hidden if rms and kind.scaled else 0
    behind, everywhere = placed != QUERY_VALUE, placed == ALL_LINEAR
    relu = not model.mlp_gated and kind.plain == RELU
    return (
        (kind.norm_inputs * model.hidden + heads) if rms else 0.0,
        0.0 if rms else kind.norm_inputs * model.hidden,
        *((0.0, 0.0, scaled + heads) if kind.float32_scale else (scaled, heads if rms else 0.0, 0.0)),
        (1 if routed or not everywhere else kind.inputs) * model.hidden + ranks,
        model.hidden if routed else 0.0,
        (1 + kind.gated_share) * model.hidden if chosen and dense else 0.0,
        adapted_layers.readers(model, placed) * model.hidden + ranks,
        _of_attention(model, kind),
        2 * queries + (2 if behind else 1) * values,
        values if (kind.partly_rotated or model.key_rank) and behind else 0.0,
        values if behind else 0.0,
        _of_dense(model, kind, dense) + (model.hidden if kind.gated_share else 0.0),
        dense if everywhere and not relu else 0.0,
        dense if everywhere and relu else 0.0,
        kind.of_experts * chosen * model.mlp_width + 2 * chosen * model.hidden,
        (kind.of_experts - 1) * chosen * model.mlp_width + chosen * model.hidden,
        model.heads if kind.capped else 0.0,
        model.heads if kind.narrow_scores else 0.0,
        model.heads if kind.uncast_scores else 0.0,
        2.0 * queries if kind.wide_heads else 0.0,
        0.0 if rms else kind.norms * model.hidden,
        heads if kind.query_key_norm and not rms else 0.0,
        dense if kind.plain == COMPOSED_GELU and not model.mlp_gated else 0.0,
        _views(model, kind),
        kind.dropped * model.hidden,
        model.heads if kind.dropped_scores else 0.0,
        float(chosen * model.hidden),
    )


def kind_of(model: Model) -> LayerKind:
    """The kind of the model's layers."""
    return KINDS.get(model.architecture.removesuffix("_text"), LayerKind())


def holds_scores(model: Model) -> bool:
    """Tell whether attention is eager where nobody asks for another kind."""
    return model.architecture in EAGER_ALONE


def hands_over_one_key(model: Model) -> bool:
    """Tell whether heads share one key that PyTorch's fused kernels have no use for."""
    return model.architecture == "falcon" and model.kv_heads == 1


def _of_dense(model: Model, kind: LayerKind, width: float) -> float:
    """Return what an MLP keeps within, but for the input of its last layer."""
    relu = not model.mlp_gated and kind.plain == RELU
    return (GATED if model.mlp_gated else kind.plain) * width - (0 if relu else width)


def _of_values(model: Model) -> int:
    """Return the values of all heads of a token, which may be narrower than keys."""
    return model.heads * (model.value_width if model.key_rank else model.head_dim)


def _of_attention(model: Model, kind: LayerKind) -> float:
    """Return queries, keys, values and their result.

    Compressed keys are a copy of what values are a view of.
    """
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    if model.key_rank:
        made = queries - model.heads * model.turned_width
        return 2 * queries + made + 2 * _of_values(model)
    return queries + 2 * keys + _views(model, kind) + queries


def _views(model: Model, kind: LayerKind) -> float:
    """Queries and keys before they are turned.

    They are held where values are a view of the whole projection.
    """
    if not kind.rotated or model.architecture not in ONE_QUERY_LAYER:
        return 0.0
    return (model.heads + model.kv_heads) * model.head_dim
