"""Step time beside products: starting operations, moving adapters.

A GPU waits for its host where a layer has too little to do. How long hangs on operations and host, not on
tokens. The seconds of a layer are read off the shortest steps of the shipped history; those of autocast and
its adapters, and what adapters move, are fitted to our trainer's runs on one H200
(docs/measurements/README.md).
"""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array

LAYER_S = 2e-3  # starting a layer's operations, of one pass
# Of a gated layer's operations: no gate, no rotation; queries, keys and values are one product.
PLAIN_LAYER = 0.4
# Of a pass where nothing is computed again: an H100's hosts took 4 to 4.6 ms a layer and step, not 6.
UNHOOKED = 2 / 3
ADAPTED_LAYER = 1.5  # as many operations as without adapters
# Each adapted layer casts its input, its weights and what it hands on.
AUTOCAST_ADAPTER_S = 3.5e-4
ADAPTER_BYTES = 20.0  # of each input and output of an adapted layer: to float32 and back, scaled, added


def passes(c: ConfigTable) -> Array:
    """Passes of a step over all layers: forward, backward, and once more."""
    found: Array = (np.where(c.adapter, 2.0, 3.0) + c.checkpointing) * c.accumulation
    return found


def started_passes(c: ConfigTable) -> Array:
    """Passes that the host starts: all of them where layers are computed again.

    Python starts a layer again, within a hook on each saved tensor. Without that, autograd's engine starts
    the backward pass by itself.
    """
    found: Array = passes(c) * np.where(c.checkpointing, 1.0, UNHOOKED)
    return found


def operations(c: ConfigTable) -> Array:
    """Operations that a layer takes, a gated one's being 1."""
    return np.where(c.mlp_matrices == 3, 1.0, PLAIN_LAYER)


def started(c: ConfigTable) -> Array:
    """Seconds in which the host starts layers; CPUs count theirs elsewhere."""
    layers = np.where(c.cpu, 0.0, started_passes(c) * c.layers)
    seconds: Array = LAYER_S * layers * operations(c) * np.where(c.adapter, ADAPTED_LAYER, 1.0)
    return seconds


def launch_time(c: ConfigTable) -> Array:
    """Return the seconds that a micro-step spends on starting operations.

    This bounds tiny models on a CPU.
    """
    per_layer = np.where(c.adapter, 1.5e-3, 0.8e-3)
    return np.where(c.cpu, 2e-3 + c.layers * per_layer, 0.0)


def of_autocast(c: ConfigTable) -> tuple[Array, Array, float]:
    """Seconds that autocast adds to our adapters: device, host, network."""
    ours = c.ours & c.cast_norms & c.adapter
    moved = passes(c) * c.micro_tokens * ADAPTER_BYTES * c.adapted
    started_too = passes(c) * c.layers * c.adapters * AUTOCAST_ADAPTER_S
    return np.where(ours, moved / c.bandwidth, 0.0), np.where(ours, started_too, 0.0), 0.0
