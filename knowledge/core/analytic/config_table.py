"""Configurations as columns, ready for arithmetic over many at once.

The facts of model and GPU are joined on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge.core.analytic import catalogue_columns, stack
from knowledge.core.analytic.links import NETWORK_BYTES_S
from knowledge.core.domain import config_space, layer_kinds
from knowledge.core.domain.arrays import Array, Mask, Names
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config
from trainer.recipes import DEFAULT_RECIPE, RECIPES, Recipe


@dataclass(frozen=True, kw_only=True)
class ConfigTable:
    """Columns of n configurations; NaN is unknown.

    Fields have shape (n,), `settings` (n, k). Units are bytes, FLOP/s and tokens.
    """

    # configuration
    gpus: Array
    nodes: Array
    tokens: Array  # limit of a sample
    padded: Array  # a sample as it is processed, cut and padded; the limit where nothing better is known
    batch: Array  # sequences per device
    accumulation: Array
    lora_r: Array
    expert_parallel: Array
    forwards: Array  # passes of each micro-step beyond those that learn
    model_parallel: Array  # GPUs that share a sample, 1 where each has its own
    adapter: Mask
    quantized: Mask
    checkpointing: Mask
    fsdp: Mask
    hybrid: Mask  # shards within a node, whole copies between nodes
    float32: Mask
    fused: Mask  # with fused kernels; unknown counts as without
    reentrant: Mask  # the older variant of checkpointing, quicker to start; unknown counts as the other
    chunked: Mask  # logits of some positions at a time; unknown counts as all at once
    paged: Mask  # optimiser states that move to the host where memory is short
    silent: Mask  # which states the optimiser keeps is unknown
    autocast: Mask  # weights that learn are float32 beside a computation in less
    eager: Mask  # attention keeps its scores; unknown counts as not, but for families without another kind
    plain: Mask  # attention by plain products in float32, for want of a kernel that shares keys
    packed: Mask  # samples without padding; unknown counts as padded
    upcast: Mask  # what quantisation leaves out is float32
    cast_norms: Mask  # layer norms and powers are computed in float32
    lifted: Mask  # so, or by autocast, is the stream between layers on 4-bit weights
    held_inputs: Mask  # FSDP's hooks hold inputs of frozen layers, and gradients, to a backward pass's end
    ours: Mask  # our trainer: its optimiser is fused, and every micro-step reduces what FSDP shards
    windowed: Array  # share of layers whose window is a mask
    dropout: Mask  # adapters drop a share of their input
    repeated_flash: Mask  # keys and values are copied so for a kernel that needs no copies
    repeated: Mask  # keys and values are copied for all heads, as by kernels of GPUs before Ampere
    whole_scales: Mask  # FSDP leaves the scales of 4-bit weights whole
    kept_inputs: Mask  # 4-bit layers keep their inputs, adapters or not
    litgpt: Mask  # LitGPT's own models and loop, in 16 bits
    newer_pytorch: Mask  # 2.8 or later; unknown counts as older
    counting: Mask  # tokens predicted right are counted by a copy of the logits
    state_bytes: Array  # per trained parameter: weight, gradient, optimiser
    network_bytes_s: Array
    settings: Array  # those without a word of their own here, shape (n, k), as OTHER_SETTINGS lists them
    # model
    model_key: Names  # the catalogue's own
    family: Names
    layers: Array
    hidden: Array
    queries: Array
    keys: Array
    heads: Array
    kept: Array  # elements that a layer keeps for a token, shape (n, k), as layer_kinds.KEPT lists them
    mlp: Array
    mlp_matrices: Array
    vocab: Array
    parameters: Array
    active_parameters: Array
    matmul: Array
    blocks: Array
    experts: Array
    expert_width: Array
    attention_layers: Array
    adapted: Array  # inputs and outputs of the layers that LoRA adapts
    adapters: Array  # adapted layers of one layer
    head: Array  # weights of the layer that makes logits
    towers: Array  # weights that text does not reach: held, never trained
    litgpt_layer: Array  # bytes of a token in a layer of LitGPT's, shape (n, k), as LitgptLayer lists them
    # GPU
    gpu_key: Names  # the catalogue's own
    cpu: Mask
    peak: Array
    reach: Array  # what its matrix products reach of the peak, as a share of what NVIDIA's do
    bandwidth: Array
    memory: Array
    link_bytes_s: Array
    rack: Array  # GPUs that such links join beyond the node; 0 where they end with it

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: NDArray[np.intp] | Mask) -> ConfigTable:
        """The chosen rows; the table itself where they are all of them in order."""
        every = rows.all() if rows.dtype == bool else np.array_equal(rows, np.arange(len(self)))
        if every:
            return self
        return ConfigTable(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def setting(self, name: str) -> Array:
        """The column of one of OTHER_SETTINGS; unknown counts as the stated default."""
        column = self.settings[:, config_space.OTHER_SETTINGS.index(name)]
        known: Array = np.where(np.isnan(column), config_space.usual_setting(name), column)
        return known

    def canonical(self, config: Config, row: int) -> Config:
        """The configuration of a row under the catalogue's own names."""
        return replace(config, model_name=self.model_key.of_row(row), gpu_model=self.gpu_key.of_row(row))

    def identities(self, configs: Sequence[Config]) -> list[str]:
        """The identity of each row's configuration."""
        return [config_space.config_hash(self.canonical(x, row)) for row, x in enumerate(configs)]

    @cached_property
    def scoring(self) -> Mask:
        """Whether attention keeps its scores, by whatever way."""
        return self.eager | self.plain

    @cached_property
    def micro_tokens(self) -> Array:
        """Tokens a GPU handles in a usual micro-step (`T`)."""
        return self.batch * self.padded / self.model_parallel

    @cached_property
    def peak_tokens(self) -> Array:
        """Return the tokens a GPU holds in the longest micro-step: what memory must bear.

        Of samples that are not padded one is as long as can be, and the others are usual ones.
        """
        whole = np.where(self.packed, (self.batch - 1) * self.padded + self.tokens, self.batch * self.tokens)
        found: Array = whole / self.model_parallel
        return found

    @cached_property
    def shards(self) -> Array:
        """GPUs that share one copy of the weights, in the mean over all."""
        fsdp = np.where(self.hybrid, self.gpus / self.nodes, self.gpus)
        held = (self.parameters - self.apart) / fsdp + self.apart_here
        return np.where(self.fsdp, self.parameters / held, self.model_parallel)

    @cached_property
    def apart(self) -> Array:
        """Weights of experts that GPUs share.

        FSDP leaves them out: as many GPUs hold a copy together, and others another copy. With a degree of 1
        ScatterMoE of fms-acceleration replicates them on every GPU.
        """
        routed = self.layers * self.experts * self.mlp_matrices * self.hidden * self.expert_width
        return np.where(self.fsdp & (self.expert_parallel > 0), routed, 0.0)

    @cached_property
    def apart_here(self) -> Array:
        """Such weights of one GPU."""
        found: Array = self.apart / np.maximum(self.expert_parallel, 1)
        return found

    @cached_property
    def lora_parameters(self) -> Array:
        """Adapter weights; 0 for full fine-tuning."""
        return np.where(self.adapter, self.lora_r * self.adapted, 0.0)


DEFAULT_LORA_R = 16


def columns(
    configs: Sequence[Config], catalogue: Catalogue, padded: Sequence[float | None] | None = None
) -> ConfigTable:
    """Return the configurations as columns.

    `padded` gives each row's processed tokens per sample. Raises UnknownModel or UnknownGpu.
    """
    floats = _floats(configs)
    limit = floats["tokens"]
    models = {name: catalogue.model(name) for name in {c.model_name for c in configs}}
    alone = {name: layer_kinds.holds_scores(model) for name, model in models.items()}
    floats["padded"] = np.array([p or t for p, t in zip(padded, limit, strict=True)]) if padded else limit
    return ConfigTable(
        **floats,
        adapter=np.array([c.tuning in config_space.ADAPTERS for c in configs], dtype=bool),
        quantized=np.array([stack.in_4_bits(c) for c in configs], dtype=bool),
        checkpointing=np.array([c.gradient_checkpointing is not False for c in configs], dtype=bool),
        fsdp=np.array([stack.is_fsdp(c) for c in configs], dtype=bool),
        hybrid=np.array([c.sharding == stack.HYBRID and c.number_nodes > 1 for c in configs], dtype=bool),
        float32=np.array([c.precision == "float32" for c in configs], dtype=bool),
        fused=np.array([c.fast_kernels is True for c in configs], dtype=bool),
        reentrant=np.array([c.reentrant_checkpointing is True for c in configs], dtype=bool),
        chunked=np.array([c.chunked_loss is True for c in configs], dtype=bool),
        paged=np.array([c.optimizer_state == stack.PAGED for c in configs], dtype=bool),
        silent=np.array([c.optimizer_state is None for c in configs], dtype=bool),
        autocast=np.array([stack.autocasts(c) for c in configs], dtype=bool),
        eager=np.array([stack.attends_eagerly(c, alone=alone[c.model_name]) for c in configs], dtype=bool),
        plain=np.array([stack.attends_plainly(c, catalogue) for c in configs], dtype=bool),
        packed=np.array([c.padding_free is True for c in configs], dtype=bool),
        upcast=np.array([stack.upcasts(c) for c in configs], dtype=bool),
        cast_norms=np.array([stack.casts_norms(c) for c in configs], dtype=bool),
        lifted=np.array([stack.lifts(c, catalogue) for c in configs], dtype=bool),
        held_inputs=np.array([stack.holds_inputs(c) for c in configs], dtype=bool),
        ours=np.array([stack.is_ours(c) for c in configs], dtype=bool),
        windowed=np.array([stack.windowed(c, models[c.model_name]) for c in configs], dtype=float),
        dropout=np.array([stack.drops_out(c) for c in configs], dtype=bool),
        repeated_flash=np.array([stack.repeats_for_flash(c, catalogue) for c in configs], dtype=bool),
        repeated=np.array([stack.repeats(c, catalogue) for c in configs], dtype=bool),
        whole_scales=np.array([stack.keeps_scales(c) for c in configs], dtype=bool),
        kept_inputs=np.array([stack.keeps_inputs(c) for c in configs], dtype=bool),
        litgpt=np.array([stack.is_litgpt(c) for c in configs], dtype=bool),
        newer_pytorch=np.array([stack.is_newer_pytorch(c) for c in configs], dtype=bool),
        counting=np.array([stack.counts_accuracy(c) for c in configs], dtype=bool),
        settings=_settings(configs),
        **catalogue_columns.of_models(configs, catalogue),
        **catalogue_columns.of_gpus(configs, catalogue),
    )


def recipe_of(config: Config) -> Recipe:
    """The recipe of our trainer; others' trainings cost as the usual one."""
    return RECIPES.get(config.recipe or "", DEFAULT_RECIPE)


_FLOATS: dict[str, Callable[[Config], float]] = {
    "gpus": lambda c: c.number_gpus,
    "nodes": lambda c: c.number_nodes,
    "tokens": lambda c: c.tokens_per_sample,
    "batch": lambda c: c.per_device_batch_size * recipe_of(c).cost.sequences,
    "forwards": lambda c: recipe_of(c).cost.forwards,
    "accumulation": lambda c: c.gradient_accumulation_steps,
    "lora_r": lambda c: c.lora_r or DEFAULT_LORA_R,
    "expert_parallel": lambda c: c.expert_parallel or 0,
    "model_parallel": lambda c: c.model_parallel or 1,
    "state_bytes": stack.state_bytes,
    "network_bytes_s": lambda c: NETWORK_BYTES_S.get(c.network or "tcp", 1e9),
}


def _settings(configs: Sequence[Config]) -> Array:
    found = [[config_space.setting(c, name) for name in config_space.OTHER_SETTINGS] for c in configs]
    return np.array(found, dtype=float).reshape(len(configs), len(config_space.OTHER_SETTINGS))


def _floats(configs: Sequence[Config]) -> dict[str, Any]:
    return {name: np.array([read(c) for c in configs], dtype=float) for name, read in _FLOATS.items()}
