"""Physics: what a configuration should cost before anything was measured.

Sources: Kaplan et al. 2020 (6 FLOPs per parameter and token); Korthikanti et al. 2022 (activations,
recomputation); Rajbhandari et al. 2020 (ZeRO); Dettmers et al. 2023 (QLoRA); Qiao et al. 2021 (overlap).
Symbols as in docs/knowledge.md. Everything works on columns of shape (n,).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from knowledge.core.analytic import activations, gathered, held_weights, litgpt, overheads
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.loss.logits import blocks_left, of_fragments, of_logits
from knowledge.core.domain.arrays import Array

MEMORY_MARGIN = 1.08  # fragmentation and what nobody counts
QUANTIZED_SLOWDOWN = 1.1  # κ_q: dequantising 4-bit weights; 1.35 in the literature, less with today's kernels
A100_BALANCE = 155.0  # FLOPs per byte of memory traffic at the peak; η was measured on A100s
USUAL_WIDTH, WIDTH_POWER = 4096.0, 0.15  # η by hidden size, around that of the 7B models
EXPERT_WIDTH = 600.0  # expert width at which grouped matrix products reach half of their efficiency
USABLE = 0.98  # of a GPU's memory: the driver keeps the rest
CONTEXT_BYTES, CONTEXT_SHARE = 0.15e9, 0.005  # of a CUDA context, which grows with the GPU
CACHED_SHARE = 0.03  # of activations and logits: memory that the allocator rounds up and cannot put together
CPU_CONTEXT_BYTES = 0.65e9  # interpreter, libraries and their pools of a CPU process, measured
COLLECTED_COPIES = 10  # how much more of a collected layer was held than is needed, read off the history
HOP_S, CROSS_NODE_HOP_S = 10e-6, 30e-6
TAU, CPU_TAU = 0.35, 0.7  # stated standard deviation of ln θ
Z_80 = 1.28


@dataclass(frozen=True, slots=True)
class Memory:
    """Predicted bytes of one GPU at the peak, in parts; each of shape (n,)."""

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    adapters: Array
    cached: Array
    context: Array
    communicators: Array
    gathered: Array
    copies: Array

    @property
    def total(self) -> Array:
        """All parts together, bytes of one GPU."""
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.activations
            + self.logits
            + self.adapters
            + self.cached
            + self.context
            + self.communicators
            + self.gathered
            + self.copies
        )


def flops_per_token(c: ConfigTable) -> Array:
    """Return the FLOPs executed per token by forward, backward and recomputation.

    The adapters' own FLOPs are left out.
    """
    matmul = 2 * c.matmul
    attention = 2 * c.padded * c.queries * c.attention_layers
    recompute = c.checkpointing.astype(float)
    passes: Array = np.where(c.adapter, 2.0, 3.0) + recompute + c.forwards
    flops: Array = passes * matmul + (3.0 + recompute + c.forwards) * attention
    return flops


def saturation(micro_tokens: Array, eta_max: Array | float, half_tokens: Array | float) -> Array:
    """Share of the peak reached with `micro_tokens` in flight: η_max·T/(T+T½)."""
    share: Array = eta_max * micro_tokens / (micro_tokens + half_tokens)
    return share


def ring_bytes(ranks: Array, gathered: Array, reduced: Array | float) -> Array:
    """Return the bytes that one rank exchanges.

    `gathered` counts twice (forward, backward), `reduced` once (ZeRO-3).
    """
    exchanged: Array = (ranks - 1) / ranks * (2 * gathered + reduced)
    return exchanged


def step_time(
    compute: Array, network: Array, optimizer: Array, accumulation: Array, fsdp: Array, overlap: float = 1.0
) -> Array:
    """Return the seconds of one optimiser step.

    The overlap γ is 1 without overlap and 10 with nearly full overlap.

    FSDP communicates in every micro-step, DDP in the last one alone.
    """
    joint = (compute**overlap + network**overlap) ** (1 / overlap)
    micro = np.where(fsdp, joint, compute)
    seconds: Array = (accumulation - 1) * micro + joint + optimizer
    return seconds


def throughput(c: ConfigTable) -> Array:
    """θ: tokens/s of the whole job."""
    tokens = c.micro_tokens
    flops = flops_per_token(c) + 6 * c.lora_parameters
    slowdown = np.where(c.quantized, QUANTIZED_SLOWDOWN, 1.0)
    compute = tokens * flops * slowdown / (c.peak * saturation(tokens, eta_max(c), half_tokens(c)))
    compute = compute + overheads.launch_time(c)
    step = step_time(compute, network_time(c), optimizer_time(c), c.accumulation, c.fsdp)
    rate: Array = c.gpus * c.accumulation * tokens / step
    return rate


def memory(c: ConfigTable) -> Memory:
    """The peak of one GPU in its parts, bytes; 1.08 times the total must fit."""
    weights, stored = held_weights.of_model(c), held_weights.stored_bytes(c)
    trained = np.where(c.adapter, 0.0, c.parameters)
    gradients = trained * np.where(c.state_bytes == 16, stored, 2.0)
    states = trained * c.state_bytes - np.where(c.adapter, 0.0, weights) - gradients
    logits, layer = of_logits(c), activations.of_layer(c)
    working = activations.in_work(c, layer)
    kept = _activation_bytes(c, layer, working, logits)
    forward = kept + activations.of_weight_copies(c)
    forward = forward - _given_way(c, forward, gradients / c.shards)
    passing = blocks_left(c, activations.in_forward(c, layer), working, logits)
    # Gradients and states of experts that GPUs share are made there first.
    sending = activations.in_sending(c, layer) - np.where(c.adapter, 0.0, (c.state_bytes - 2) * c.apart_here)
    left = np.maximum(passing, sending) + CACHED_SHARE * (kept + logits)
    cached = np.where(c.cpu, 0.0, np.maximum(left, of_fragments(c, kept)))
    # A step's copies come when activations and logits are gone, and take their blocks, as a start's do.
    blocks = forward + logits + cached
    rest = (blocks, gradients / c.shards, states / c.shards)
    copies = gathered.of_copies(c, gathered.of_step(c, stored), rest)
    context = np.where(c.cpu, CPU_CONTEXT_BYTES, CONTEXT_BYTES + CONTEXT_SHARE * c.memory)
    whole = Memory(
        weights=(weights + held_weights.of_towers(c)) / c.shards + held_weights.of_scales(c),
        gradients=gradients / c.shards,
        optimizer=states / c.shards,
        activations=forward + litgpt.instead(c, np.zeros(len(c)), litgpt.of_former),
        logits=logits,
        adapters=_adapter_bytes(c) * c.lora_parameters / c.shards,
        cached=cached,
        gathered=gathered.of_all(c),
        copies=np.maximum(copies, gathered.of_picked_experts(c) - blocks),
        context=context,
        communicators=gathered.of_communicators(c, context),
    )
    return replace(whole, optimizer=np.where(c.paged, _resident(c, whole), whole.optimizer))


def paging_bytes(c: ConfigTable) -> Array:
    """Return the bytes of paged optimiser states that one step moves.

    They move between a GPU and its host; both directions are counted together.

    Pages are used in turn, so where they do not all fit, each is gone when its turn comes. States
    that no GPU has room for must be paged as well, or nothing runs: a configuration that does not
    state its optimiser counts as paged in that case, and as short of room in every micro-step.
    """
    if not (c.paged | c.silent).any():
        return np.zeros(len(c))
    found = memory(replace(c, paged=np.zeros(len(c), dtype=bool)))
    held = found.total - found.gathered - found.copies
    crowded = held + COLLECTED_COPIES * gathered.of_layers(c) > USABLE * c.memory
    impossible = found.weights + found.gradients + found.optimizer + found.context > c.memory
    times = np.where(c.paged & crowded, 1.0, np.where(c.silent & impossible, c.accumulation, 0.0))
    moved: Array = 2 * times * found.optimizer
    return moved


def needed(c: ConfigTable) -> Array:
    """Return the bytes of one GPU without which nothing runs; a peak may have more.

    A step's copies come when activations and logits are gone. Where memory is short, PyTorch's allocator
    gives their blocks back, and those of copies later on (`release_cached_blocks`), and tries again.
    """
    whole, stored = memory(c), held_weights.stored_bytes(c)
    none = np.zeros(len(c))
    copied = gathered.of_copies(c, gathered.of_step(c, stored), (none, whole.gradients, whole.optimizer))
    states = whole.weights + whole.gradients + whole.optimizer + whole.adapters
    working = states + copied + whole.context + whole.communicators
    found: Array = np.maximum(whole.total - whole.copies, working)
    return found


def fits(c: ConfigTable) -> Array:
    """Return the capacity over 1.08 times what is needed; 1 or more fits."""
    share: Array = c.memory / (MEMORY_MARGIN * needed(c))
    return share


def spread(c: ConfigTable) -> Array:
    """τ: the stated standard deviation of ln θ around the prior."""
    return np.where(c.cpu, CPU_TAU, TAU)


def _resident(c: ConfigTable, whole: Memory) -> Array:
    """Return the bytes of paged optimiser states that stay on the GPU.

    As much stays as there is room for.
    """
    room = c.memory / MEMORY_MARGIN - (whole.total - whole.optimizer)
    stays: Array = np.clip(room, 0.0, whole.optimizer)
    return stays


def _activation_bytes(c: ConfigTable, layer: Array, working: Array, logits: Array) -> Array:
    """Return the bytes of what is kept and of what works.

    `layer`: of a token that one layer keeps without checkpointing; `working` and `logits`: bytes. The layer
    in work counts where it takes more than logits, which are gone before the backward pass comes to a layer.
    """
    boundaries = activations.of_boundary(c) * c.layers * c.peak_tokens
    dequantized = np.where(c.quantized, activations.attention_bytes(c) * c.hidden * c.expert_width, 0.0)
    # Of what a checkpointed layer gave, or by a pass's end of all inputs that FSDP holds but the first one.
    gradients = np.where(c.held_inputs, c.layers - 1, np.where(c.checkpointing, 1.0, 0.0))
    given = activations.of_boundary(c) * gradients
    again = working + given * c.peak_tokens + dequantized
    beyond = np.maximum(0.0, again - logits)
    kept: Array = np.where(c.checkpointing, boundaries, c.layers * layer * c.peak_tokens) + beyond
    return kept


def _given_way(c: ConfigTable, kept: Array, gradients: Array) -> Array:
    """Return the bytes of activations in whose place gradients come.

    None with accumulation. None where FSDP shards: a layer's gradients are whole before they are.
    """
    found: Array = np.where((c.accumulation == 1) & ~c.fsdp, np.minimum(kept, gradients), 0.0)
    return found


def _adapter_bytes(c: ConfigTable) -> Array:
    """Bytes of an adapter's weight, its gradient and its states; float32 if unknown."""
    return litgpt.instead(c, np.where(c.silent, 16.0, c.state_bytes), litgpt.of_adapter)


def eta_max(c: ConfigTable) -> Array:
    """Highest share of the peak, by tuning and width.

    Less on GPUs with little bandwidth for their peak, and for models with narrow layers or experts.
    """
    known = np.where(c.adapter, 0.55, 0.60) * (c.hidden / USUAL_WIDTH) ** WIDTH_POWER
    starved = np.minimum(1.0, np.sqrt(A100_BALANCE * c.bandwidth / c.peak))
    experts = np.where(c.experts > 0, c.expert_width / (c.expert_width + EXPERT_WIDTH), 1.0)
    return np.where(c.cpu, 0.45, known * starved * experts * c.reach)


def half_tokens(c: ConfigTable) -> Array:
    """T½: tokens in flight at which half of the highest efficiency is reached."""
    return np.where(c.cpu, 64.0, 500.0)


def network_time(c: ConfigTable) -> Array:
    """Seconds of one exchange of gradients, and with fsdp of weights."""
    inside, across = network_times(c)
    seconds: Array = inside + across
    return seconds


def network_times(c: ConfigTable) -> tuple[Array, Array]:
    """Return the network time as a part within nodes and a part between nodes.

    Each ring is as fast as its slowest link. Hybrid sharding gathers weights within a node; between
    nodes each GPU exchanges its gradients alone.
    """
    frozen_bytes = np.where(c.float32, 4.0, 2.0) * c.parameters
    gradient_bytes = np.where(c.float32 | c.adapter, 4.0, 2.0) * held_weights.trained_parameters(c)
    gathered = np.where(c.fsdp, frozen_bytes, gradient_bytes)
    reduced = np.where(c.fsdp, np.where(c.adapter, 0.0, gradient_bytes), 0.0)
    between = np.minimum(c.network_bytes_s, c.link_bytes_s)
    apart = (c.nodes > 1) & (c.gpus > c.rack) & ~c.hybrid
    ranks = np.where(c.hybrid, c.gpus / c.nodes, c.gpus)
    exchanged = ring_bytes(ranks, gathered, reduced)
    within = exchanged / c.link_bytes_s + 2 * (ranks - 1) * HOP_S
    whole = exchanged / between + 2 * (ranks - 1) * CROSS_NODE_HOP_S
    own = ring_bytes(c.nodes, gradient_bytes / c.shards, 0.0)
    copies = own / between + 2 * (c.nodes - 1) * CROSS_NODE_HOP_S
    return np.where(apart, 0.0, within), np.where(apart, whole, np.where(c.hybrid, copies, 0.0))


def optimizer_time(c: ConfigTable) -> Array:
    """Seconds of the weights' update, bound by memory traffic."""
    shards = np.where(c.fsdp, c.shards, 1.0)
    seconds: Array = 28 * held_weights.trained_parameters(c) / shards / c.bandwidth
    return seconds
