"""Memory of NCCL's communicators: what GPUs that work together hold to exchange data.

A communicator has buffers for each channel to each GPU that it is connected with (NCCL, `initTransports` and
`src/transport/p2p.cc`), and kernels.
"""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array

# Of a channel to one GPU: buffers of the protocols LL (0.5 MB), LL128 (4.9 MB) and Simple (4.2 MB).
CHANNEL_BYTES = 9.63e6
PEER_CHANNELS = 32  # to each GPU that data are sent to by itself; the next power of two from an A100's 24


def of_gpus(c: ConfigTable, context: Array) -> Array:
    """Return the bytes of one GPU, (n,).

    context: of CUDA; a communicator with its kernels, rings and trees takes as much (0.55 GB of an A100; 24
    channels in a ring and two directions of a tree are 0.69 GB).
    """
    found: Array = _groups(c) * context + _peers(c) * PEER_CHANNELS * CHANNEL_BYTES
    return found


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
