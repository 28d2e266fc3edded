"""Memory of shards put together, of a step's copies and of communicators.

Stacks hold them for a while beside a model's states. FSDP (Zhao et al., VLDB 2023) puts a layer together when
it is used, and the next one ahead of time (BACKWARD_PRE); its root unit, embeddings and head, stays together
for a whole step. NCCL's communicators stay, with kernels and buffers for each channel to each GPU that they
connect (its `initTransports` and `src/transport/p2p.cc`).
"""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array, Mask

# Of a channel to one GPU: buffers of NCCL's protocols LL (0.5 MB), LL128 (4.9 MB) and Simple (4.2 MB).
CHANNEL_BYTES = 9.63e6
PEER_CHANNELS = 32  # to each GPU that data are sent to by itself; the next power of two from an A100's 24
# The most that a step's copies take of free blocks on one GPU in plays (`benchmarks/trainer/whole_steps.py`).
TAKEN = 0.5
QUANTIZED_BYTES = 0.516  # of a weight in 4 bits with its scales, quantised themselves (Dettmers et al. 2023)

# Families that pick each expert from one tensor of a layer, in turn (`GraniteMoeParallelExperts` and kin).
PICKED = frozenset({"granitemoe", "granitemoehybrid", "granitemoeshared"})


def of_layers(c: ConfigTable) -> Array:
    """Bytes of the layer in use, of the next one, and of its gradients, (n,)."""
    found: Array = np.where(c.adapter, 2.0, 3.0) * _layer(c)
    return found


def of_pending(c: ConfigTable) -> Array:
    """Bytes of a layer that is sharded again while its memory is not free yet, (n,).

    FSDP lets two such layers be pending before it waits for the older one (`_FreeEventQueue`), so that in the
    backward pass one lies beside the layer in use and the next. FSDP2, as our trainer has it, has no such
    queue.
    """
    return np.where(c.ours, 0.0, _layer(c))


def of_all(c: ConfigTable) -> Array:
    """Bytes of all that is put together from shards, gradients too, (n,)."""
    layers = of_layers(c) + of_pending(c)
    found: Array = layers + of_root(c) + of_whole_gradients(c)
    return found


def of_root(c: ConfigTable) -> Array:
    """Bytes of embeddings, head and norms, and of gradients if they learn, (n,)."""
    found: Array = np.where(c.adapter, 1.0, 2.0) * _root(c)
    return found


def of_start(c: ConfigTable) -> Array:
    """Bytes that the allocator keeps of how FSDP sharded the largest unit, (n,).

    When a model is wrapped, each unit lies on the GPU as it was, as one flat tensor, and padded
    (`FlatParamHandle`); activations take its blocks later. Where shards are float32 beside a computation in
    16 bits, each unit is made whole in float32 once more, for whoever asks for it so
    (`_full_prec_full_param_padded`). Our trainer's FSDP2 makes no flat tensors.
    """
    tensors = np.where(_upcasts(c), 5.0, 3.0)  # as wide as the computation
    return np.where(c.ours, 0.0, tensors * np.maximum(_layer(c), _root(c)))


def of_narrow_shards(c: ConfigTable) -> Array:
    """Bytes of the blocks that shards in 16 bits left, (n,).

    Accelerate made float32 of them. They are as small as a layer's shard, so that next to nothing of
    activations and logits fits into them.
    """
    return np.where(_upcasts(c), 2.0 * c.parameters / c.shards, 0.0)


def of_whole_gradients(c: ConfigTable) -> Array:
    """Bytes of gradients that wait, whole, for a step's last micro-step, (n,).

    With accumulation Accelerate calls `no_sync` of PyTorch's FSDP, which leaves them whole on each GPU until
    then. Our trainer reduces in every micro-step.
    """
    whole = _sharded(c) & (c.accumulation > 1) & ~c.adapter & ~c.ours
    return np.where(whole, _width(c) * (c.parameters - c.apart), 0.0)


def of_picked_experts(c: ConfigTable) -> Array:
    """Bytes of gradients of a layer's experts, one for each, (n,).

    A pick's gradient is as large as all experts, zero but for one, and all are summed up. FSDP makes views of
    weights on the stream that gathers them (`_unshard`), so the sum is made there (`InputBuffer::add`), and
    each gradient's block waits for that stream, which is behind (`recordStream`). On one stream a block is
    free at once. By then logits are gone.
    """
    alone = c.family.among(PICKED) & _sharded(c) & ~c.adapter & ~c.ours & (c.expert_parallel == 0)
    one = c.experts * c.mlp_matrices * c.hidden * c.expert_width
    return np.where(alone, c.experts * _width(c) * one, 0.0)


def of_step(c: ConfigTable, stored: Array | float) -> Array:
    """Bytes of the copies that an optimiser makes while it updates weights, (n,).

    PyTorch's AdamW works on all tensors of a GPU at once unless it is fused, and holds one more copy of what
    it updates (its `foreach`). Paged and 8-bit states are updated in place. stored: bytes of a weight that
    learns.
    """
    copied = ~c.adapter & ~c.ours & ~c.paged & ~c.cpu & (c.state_bytes != 6)
    return np.where(copied, stored * c.parameters / c.shards, 0.0)


def blocks_for_copies(c: ConfigTable, blocks: Array, states: Array | float) -> Array:
    """Bytes of activations' blocks that a step's copies may take, (n,).

    They are free by then, and so are those of logits, but the first step makes its states there before. Where
    gradients came there, in a backward pass, most states lie elsewhere, but small ones are left in between,
    and no block is whole again; what FSDP reduces has a stream of its own, and so blocks. LitGPT tells bytes
    allocated, which know no blocks. states: of the optimiser, bytes of one GPU.
    """
    free = np.maximum(0.0, blocks - states)
    alone = np.where(c.litgpt, blocks, np.maximum(TAKEN * blocks, free))
    return np.where(_sharded(c), free, alone)


def of_copies(c: ConfigTable, of_step: Array, of_rest: tuple[Array, Array, Array]) -> Array:
    """Bytes of a step's copies, or of what the start left, (n,).

    Paged states are no blocks of the allocator, so nothing but activations takes what is left of the start;
    where it is a step's states that are made there, they take all of it.

    of_rest: blocks of activations and logits, gradients and states, bytes of one GPU.
    """
    blocks, gradients, states = of_rest
    made_there = np.where(c.paged, 0.0, gradients + states)
    copies = np.maximum(of_step - blocks_for_copies(c, blocks, states), of_start(c) - made_there - blocks)
    found: Array = np.maximum(0.0, copies) + np.where(c.paged, of_narrow_shards(c), 0.0)
    return found


def of_communicators(c: ConfigTable, context: Array) -> Array:
    """Return the bytes of NCCL's communicators, (n,).

    context: of CUDA; a communicator with its kernels, rings and trees takes as much (0.55 GB of an A100; 24
    channels in a ring and two directions of a tree are 0.69 GB).
    """
    found: Array = _groups(c) * context + _peers(c) * PEER_CHANNELS * CHANNEL_BYTES
    return found


def _upcasts(c: ConfigTable) -> Mask:
    """Whether Accelerate makes float32 of shards in 16 bits."""
    found: Mask = _sharded(c) & ~c.adapter & ~c.float32 & ~c.ours & (c.state_bytes == 16)
    return found


def _layer(c: ConfigTable) -> Array:
    """Bytes of one layer put together; experts that GPUs share are no part of it."""
    width = np.where(c.quantized, QUANTIZED_BYTES, _width(c))
    return np.where(_sharded(c), width * (c.blocks - c.apart) / c.layers, 0.0)


def _root(c: ConfigTable) -> Array:
    return np.where(_sharded(c), _width(c) * (c.parameters - c.blocks), 0.0)


def _sharded(c: ConfigTable) -> Mask:
    found: Mask = c.fsdp & (c.gpus > 1)
    return found


def _width(c: ConfigTable) -> Array:
    return np.where(c.float32, 4.0, 2.0)


def _groups(c: ConfigTable) -> Array:
    """Groups of GPUs that a GPU is in: of all, and of either dimension of a mesh.

    FSDP makes such a mesh where it shards within nodes alone, ScatterMoE where fewer GPUs share the experts
    than there are.
    """
    degree = c.expert_parallel
    mesh = c.hybrid | (c.fsdp & (degree > 1) & (degree < c.gpus))
    return np.where((c.gpus > 1) & ~c.cpu, np.where(mesh, 3.0, 1.0), 0.0)


def _peers(c: ConfigTable) -> Array:
    """GPUs to which each GPU sends tokens for their experts."""
    return np.where(c.fsdp & (c.gpus > 1), np.maximum(c.expert_parallel - 1, 0.0), 0.0)
