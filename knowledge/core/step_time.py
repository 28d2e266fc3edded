"""Physics whose coefficients are fitted to measured steps: it carries over to unseen models and GPUs.

The prior states its efficiencies; here the seconds of a step are a sum of parts, each of which grows as
physics says, and only their weights are learnt. With few rows they stay at the stated ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares

from knowledge.core import prior
from knowledge.core.columns import Array, Columns, Mask

LAYER_S = 1.2e-3  # starting the operations of a layer, once a pass
EXPERT_S = 1.5e-4  # and of an expert that no fused kernel serves
GATHER_S = 5e-4  # collecting a layer's weights or gradients, beside the bytes themselves
STEP_S = 5e-3
ROBUST = 0.2  # errors of ln(seconds) beyond this count linearly: some runs are several times too slow
STRENGTH = 1.0  # how many rows a stated weight counts as
BOUND = 12.0  # weights stay between e^-12 and e^12


def step_parts(c: Columns) -> Array:
    """Seconds of one optimiser step in parts at their stated weights, shape (n, k)."""
    passes = (np.where(c.adapter, 2.0, 3.0) + c.checkpointing) * c.accumulation
    exchanges = np.where(c.fsdp, c.accumulation, 1.0)
    flops = prior.flops_per_token(c) + 6 * c.lora_parameters
    reachable = c.peak * prior.eta_max(c)
    compute = c.accumulation * flops * c.micro_tokens / reachable
    ramp = c.accumulation * flops * prior.half_tokens(c) / reachable
    loops = np.where(c.expert_parallel > 0, 0.0, c.experts)
    hops = np.where(c.gpus > 1, 1 + np.log2(c.gpus), 0.0)
    network = exchanges * prior.network_time(c)
    launch = np.where(c.cpu, c.accumulation * prior.launch_time(c), passes * c.layers * LAYER_S)
    parts = [
        *_by(c.adapter, compute),
        *_by(c.adapter, ramp),
        *_by(c.adapter, launch),
        *_by(c.nodes > 1, network),
        np.where(c.quantized, (prior.QUANTIZED_SLOWDOWN - 1) * compute, 0.0),
        passes * 2 * c.active_parameters / c.bandwidth,
        passes * c.micro_tokens * c.layers * (24 * c.hidden + 4 * c.mlp) / c.bandwidth,
        c.accumulation * c.micro_tokens * 20 * c.vocab / c.bandwidth,
        passes * c.layers * loops * EXPERT_S,
        exchanges * c.layers * hops * GATHER_S,
        prior.optimizer_time(c),
        np.full(len(c), STEP_S),
    ]
    return np.column_stack(parts)


def _by(mask: Mask, seconds: Array) -> list[Array]:
    """A part with a weight of its own where the mask holds."""
    return [np.where(mask, seconds, 0.0), np.where(mask, 0.0, seconds)]


class StepTime:
    """Weights of the parts of a step. After `fit`: `weights_`, shape (k,)."""

    def fit(self, c: Columns, tokens_per_second: Array, groups: Sequence[str]) -> StepTime:
        """tokens_per_second: measured, shape (n,). groups: n repeats of one count as much as √n rows."""
        parts, seconds = step_parts(c), np.log(step_tokens(c) / tokens_per_second)
        counts = Counter(groups)
        importance = np.array([counts[group] ** -0.5 for group in groups])

        def off(logs: Array) -> Array:
            error = (np.log(parts @ np.exp(logs)) - seconds) / ROBUST
            soft = np.sign(error) * np.sqrt(2 * (np.sqrt(1 + error**2) - 1))
            return np.concatenate([importance * soft, STRENGTH * logs])

        start = np.zeros(parts.shape[1])
        found = least_squares(off, start, bounds=(-BOUND, BOUND), max_nfev=60)
        self.weights_: Array = np.exp(found.x)
        return self

    def value(self, c: Columns) -> Array:
        """θ: tokens/s of the whole job, shape (n,)."""
        rate: Array = step_tokens(c) / (step_parts(c) @ self.weights_)
        return rate

    def features(self, c: Columns) -> Array:
        """What an estimator may want to know of it: the rate, and each part's share of the step."""
        parts = step_parts(c) * self.weights_
        seconds = parts.sum(axis=1)
        rate = np.log(step_tokens(c) / seconds)
        return np.column_stack([rate, rate - np.log(c.gpus), parts / seconds[:, None]])


def step_tokens(c: Columns) -> Array:
    """Tokens of one optimiser step of the whole job."""
    tokens: Array = c.gpus * c.accumulation * c.micro_tokens
    return tokens
