"""Physics whose coefficients are fitted to measured steps.

It carries over to unseen models and GPUs.

The prior states its efficiencies. Here device, host and network are each busy for a sum of
parts that grow as physics says, and only the weights of the parts are learnt. With few rows
they stay at the stated ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from knowledge.core.analytic import cost_model, overheads
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.least_squares import fit_weights, masked, shares
from knowledge.core.domain.arrays import Array

# Stated seconds a layer and pass keep the host busy, read off the shortest steps of the shipped history.
SHARD_S = 1.6e-3  # collecting its shards from other GPUs; starting its operations is in `overheads`
ADAPTER_SHARD_S = 12e-3  # where FSDP wraps every adapter by itself; fused 4-bit layers keep them out of it
PLAIN_ADAPTERS = 0.5  # of a gated layer's adapters: queries, keys and values are one product
FUSED_EXPERTS_S = 2e-3  # sorting tokens for experts that share one kernel
EXPERT_S = 2.2e-4  # starting one expert that no fused kernel serves; half of it with adapters
GATHER_S = 2e-4  # a collective's latency for each doubling of the GPUs
STEP_S = 5e-3
PRODUCTS = 0.87  # of the prior's compute, whose efficiencies hold for whole steps; here the rest has parts
RAMP = 0.23  # of the prior's: tokens a micro-step waits for until its products are as fast as they get
UNFUSED = 4.0  # times the traffic of fused operations
DEQUANTISED = 2.5  # bytes moved per 4-bit weight and pass: half a byte read, two written, before any product
HOST_BYTES_S = 12e9  # between a GPU and its host while pages move one by one
# Host, device and network work side by side: 1 is one after the other, infinity the longest alone.
OVERLAP = 2.0
IDLE_S = 1e-9
ROBUST = 0.2  # errors of ln(seconds) beyond this count linearly: some runs are several times too slow
SPREAD = 1.0  # of ln(weight), stated

Parts = tuple[Array, Array, Array]


def step_parts(c: ConfigTable) -> Parts:
    """Return the seconds of a step on device, host and network, in parts.

    The parts are at their stated weights, (n, k) each.
    """
    passes = overheads.passes(c)
    return _device(c, passes), _host(c, passes), _network(c, passes)


def _device(c: ConfigTable, passes: Array) -> Array:
    flops = cost_model.flops_per_token(c) + 6 * c.lora_parameters
    per_token = PRODUCTS * c.accumulation * flops / (c.peak * cost_model.eta_max(c))
    traffic = passes * c.micro_tokens * c.layers * (24 * c.hidden + 4 * c.mlp) / c.bandwidth
    # A micro-step has work for all experts, and each ramps up by itself.
    ramp = RAMP * per_token * cost_model.half_tokens(c) * c.parameters / c.active_parameters
    parts = [
        *masked(c.adapter, per_token * c.micro_tokens),
        *masked(c.adapter, ramp),
        np.where(c.quantized, passes * DEQUANTISED * c.blocks / c.bandwidth, 0.0),
        passes * 2 * c.parameters / c.bandwidth,
        np.where(c.fused, traffic, 0.0),
        np.where(c.fused, 0.0, UNFUSED * traffic * overheads.operations(c)),
        c.accumulation * c.micro_tokens * 20 * c.vocab / c.bandwidth,
        cost_model.optimizer_time(c),
        cost_model.paging_bytes(c) / HOST_BYTES_S,
        # A CPU starts operations and does them, one after the other.
        np.where(c.cpu, c.accumulation * overheads.launch_time(c), 0.0),
    ]
    return np.column_stack(parts)


def _host(c: ConfigTable, passes: Array) -> Array:
    layers = np.where(c.cpu, 0.0, passes * c.layers)
    started = overheads.started(c)
    adapters = passes * c.attention_layers * np.where(c.mlp_matrices == 3, 1.0, PLAIN_ADAPTERS)
    wrapped = c.fsdp & c.adapter & ~(c.quantized & c.fused)
    loops = layers * np.where(c.expert_parallel > 0, 0.0, c.experts) * EXPERT_S
    parts = [
        np.where(c.reentrant, started, 0.0),
        *masked(c.adapter, np.where(c.reentrant, 0.0, started)),
        np.where(c.fsdp & ~wrapped, layers * SHARD_S, 0.0),
        np.where(wrapped, adapters * ADAPTER_SHARD_S, 0.0),
        np.where(c.expert_parallel > 0, layers * FUSED_EXPERTS_S, 0.0),
        np.where(c.adapter, 0.5 * loops, 0.0),
        np.where(c.adapter, 0.0, loops),
        np.full(len(c), STEP_S),
    ]
    return np.column_stack(parts)


def _network(c: ConfigTable, passes: Array) -> Array:
    exchanges = np.where(c.fsdp, c.accumulation, 1.0)
    hops = np.where(c.gpus > 1, 1 + np.log2(c.gpus), 0.0)
    inside, across = cost_model.network_times(c)
    # Attention and MLP of a layer that several GPUs share each gather and scatter the sample's activations.
    exchanged = 2 * 2 * c.hidden * c.micro_tokens * (c.model_parallel - 1)
    parts = [
        exchanges * inside,
        exchanges * across,
        exchanges * c.layers * hops * GATHER_S,
        passes * c.layers * exchanged / c.link_bytes_s,
    ]
    return np.column_stack(parts)


def step_seconds(parts: Parts, weights: Array, stated: Sequence[Array | float] = (0.0, 0.0, 0.0)) -> Array:
    """Return the seconds of a step from its three parts, shape (n,).

    stated: seconds of each of the three that no weight is learnt for.

    They are joined as Pollux joins compute and network (Qiao et al., OSDI 2021).
    """
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    busy = [part @ weights[ends[i] : ends[i + 1]] + stated[i] + IDLE_S for i, part in enumerate(parts)]
    seconds: Array = np.sum(np.power(busy, OVERLAP), axis=0) ** (1 / OVERLAP)
    return seconds


class StepTime:
    """Weights of the parts of a step. After `fit`: `weights_`, shape (k,)."""

    def fit(self, c: ConfigTable, tokens_per_second: Array, groups: Sequence[str]) -> StepTime:
        """Fit the weights to measured rates.

        tokens_per_second: measured, shape (n,).
        groups: repeats of one count together as one row.
        """
        parts, stated = step_parts(c), overheads.of_autocast(c)
        count = sum(part.shape[1] for part in parts)
        seconds = step_tokens(c) / tokens_per_second
        self.weights_: Array = fit_weights(
            lambda w: step_seconds(parts, w, stated), count, seconds, groups, ROBUST, SPREAD
        )
        return self

    def value(self, c: ConfigTable) -> Array:
        """θ: tokens/s of the whole job, shape (n,)."""
        rate: Array = step_tokens(c) / step_seconds(step_parts(c), self.weights_, overheads.of_autocast(c))
        return rate

    def observed(self, c: ConfigTable) -> Array:
        """The rate as a measurement shows it."""
        return self.value(c)

    def features(self, c: ConfigTable) -> Array:
        """Features for an estimator: the rate, and each part's share of the step."""
        rate = self.value(c)
        busy = shares(np.column_stack(step_parts(c)), self.weights_, step_tokens(c) / rate)
        return np.column_stack([np.log(rate), np.log(rate / c.gpus), busy])


def stated_rate(c: ConfigTable) -> Array:
    """θ: tokens/s of the whole job by the stated weights, (n,); on CPUs the prior's."""
    parts = step_parts(c)
    weights = np.ones(sum(part.shape[1] for part in parts))
    rate: Array = step_tokens(c) / step_seconds(parts, weights, overheads.of_autocast(c))
    return np.where(c.cpu, cost_model.throughput(c), rate)


def step_tokens(c: ConfigTable) -> Array:
    """Tokens of one optimiser step of the whole job."""
    tokens: Array = c.gpus * c.accumulation * c.micro_tokens
    return tokens
