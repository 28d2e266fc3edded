"""Facts on one model, and on one GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

GIB = 2**30
BYTES_PER_TOKEN = 4.0  # English text under the usual tokenizers


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder model's shape.

    `mlp_width` is of one expert; `parameters` counts tied matrices once.

    max_context: tokens of a sample at most; 0: no bound is stated.
    window: tokens that a token attends to in `windowed_layers` layers; 0 without.
    dense_layers: those of a mixture whose MLP has no experts, but the width `dense_mlp_width`.
    query_rank, key_rank: numbers from which queries, or keys and values, are made; 0: from the whole state.
    Then `turned_width` of a head's `head_dim` tells positions, and values have a width of their own.
    tower_parameters: of parts for images or sound, beside `parameters`; text does not reach them.
    """

    model_name: str
    architecture: str
    parameters: int
    active_parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    mlp_gated: bool
    vocab: int
    max_context: int
    tied_embeddings: bool
    attention_layers: int
    experts: int = 0
    experts_per_token: int = 0
    shared_mlp_width: int = 0
    dense_layers: int = 0
    dense_mlp_width: int = 0
    query_rank: int = 0
    key_rank: int = 0
    turned_width: int = 0
    value_width: int = 0
    tower_parameters: int = 0
    window: int = 0
    windowed_layers: int = 0
    bytes_per_token: float = BYTES_PER_TOKEN

    @property
    def name(self) -> str:
        """The entry's key in the catalogue."""
        return self.model_name

    @property
    def active_mlp_width(self) -> int:
        """Width of all MLPs that one token passes through in a layer."""
        return max(1, self.experts_per_token) * self.mlp_width + self.shared_mlp_width

    @property
    def matmul_parameters(self) -> float:
        """Weights in matrix products per token (`Nmm`).

        They are the attention, MLP and output matrices.
        """
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * self.hidden * (queries + keys)
        mamba = 6 * self.hidden**2
        mlp = (3 if self.mlp_gated else 2) * self.hidden * self.active_mlp_width
        return (
            self.attention_layers * attention
            + (self.layers - self.attention_layers) * mamba
            + self.layers * mlp
            + self.vocab * self.hidden
        )

    @property
    def block_parameters(self) -> float:
        """Weights inside the decoder blocks: what 4-bit quantisation stores in 4 bits."""
        embeddings = (1 if self.tied_embeddings else 2) * self.vocab * self.hidden
        return max(0.0, float(self.parameters - embeddings))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """A GPU's data sheet; None where it states nothing.

    Units are bytes, FLOP/s of dense matrix products, and bytes/s.
    memory_bytes: as the driver reports it. usable_bytes: what it leaves to programs; None: not known.
    fp32_flops: with TF32 where it has that. whole_fp32_flops: without; None: the same.
    """

    gpu_model: str
    memory_bytes: float
    bf16_flops: float | None
    fp16_flops: float | None
    fp32_flops: float | None
    bandwidth_bytes_s: float
    link: str
    link_bytes_s: float
    vendor: str = ""
    fp8_flops: float | None = None
    usable_bytes: float | None = None
    whole_fp32_flops: float | None = None

    @property
    def name(self) -> str:
        """The entry's key in the catalogue."""
        return self.gpu_model

    @property
    def capacity_bytes(self) -> float:
        """The memory that a program may allocate, as far as that is known."""
        return self.usable_bytes or self.memory_bytes

    def peak_flops(self, precision: str | None, *, tf32: bool = True) -> float:
        """Return the dense peak in a precision.

        GPUs without bf16 units are compared by their fp16 peak. An unstated one may be the fastest there is:
        so train most of MLPerf's systems. tf32: whether float32 may be computed so.
        """
        if precision == "float32" and not tf32 and self.whole_fp32_flops:
            return self.whole_fp32_flops
        if precision == "float32" and self.fp32_flops:
            return self.fp32_flops
        if precision in (None, "fp8") and self.fp8_flops:
            return self.fp8_flops
        best = self.fp16_flops if precision == "float16" else self.bf16_flops
        return best or self.bf16_flops or self.fp16_flops or self.fp32_flops or 1.0

    def at_rate(self, flops: float) -> GpuModel:
        """The GPU with one measured peak for every precision that it computes in."""
        return replace(
            self,
            bf16_flops=self.bf16_flops and flops,
            fp16_flops=self.fp16_flops and flops,
            fp32_flops=self.fp32_flops and flops,
            whole_fp32_flops=self.whole_fp32_flops and flops,
            fp8_flops=self.fp8_flops and flops,
        )
