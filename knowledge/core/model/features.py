"""Features of a configuration.

They are sizes in logarithms, physics, and settings as numbers. Unknown settings stay NaN for
rates and memory, since trees handle NaN. For validity they are set to the usual value: whether
a cell was filled in must never give away the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from knowledge.core.analytic import cost_model, gathered
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config

Readers = dict[str, Callable[[Config], float | None]]

TUNINGS = {"full": 0.0, "lora": 1.0, "qlora": 2.0, "gptq-lora": 3.0, "prompt-tuning": 4.0}
NETWORKS = {"none": 0.0, "tcp": 1.0, "roce": 2.0, "infiniband": 3.0}
PRECISIONS = {"bfloat16": 0.0, "float16": 1.0, "float32": 2.0, "fp8": 3.0}

# Settings and the value that an unknown one has for validity.
SETTINGS: Readers = {
    "tuning": lambda c: TUNINGS.get(c.tuning),
    "network": lambda c: NETWORKS.get(c.network or "none"),
    "precision": lambda c: PRECISIONS.get(c.precision or ""),
    "fast_kernels": lambda c: _flag(c.fast_kernels),
    "padding_free": lambda c: _flag(c.padding_free),
    "expert_parallel": lambda c: c.expert_parallel,
    "checkpointing": lambda c: _flag(c.gradient_checkpointing),
    "lora_r": lambda c: c.lora_r,
}
USUAL = {
    "precision": 0.0,
    "fast_kernels": 0.0,
    "padding_free": 0.0,
    "expert_parallel": 0.0,
    "checkpointing": 1.0,
}


def _flag(value: bool | None) -> float | None:
    return None if value is None else float(value)


def physics(c: ConfigTable) -> dict[str, Array]:
    """Sizes and what the prior makes of them, by name; each of shape (n,)."""
    memory = cost_model.memory(c)
    rate = cost_model.throughput(c)
    step = c.gpus * c.accumulation * c.micro_tokens / rate
    return {
        "gpus": np.log2(c.gpus),
        "nodes": np.log2(c.nodes),
        "gpus_per_node": np.log2(c.gpus / c.nodes),
        "micro_tokens": np.log2(np.maximum(c.micro_tokens, 1)),
        "tokens": np.log2(c.padded),
        "batch": np.log2(np.maximum(c.batch, 0.5)),
        "accumulation": np.log2(c.accumulation),
        "parameters": np.log(c.parameters),
        "active": np.log(c.active_parameters),
        "experts": c.experts,
        "mlp_share": c.expert_width / c.hidden,
        "layers": c.layers,
        "hidden": c.hidden,
        "vocab": c.vocab,
        "keys_share": c.keys / c.queries,
        "attention_share": c.attention_layers / c.layers,
        "peak": np.log(c.peak),
        "bandwidth": np.log(c.bandwidth),
        "link": np.log(c.link_bytes_s),
        "capacity": np.log(c.memory),
        "pressure": memory.total / c.memory,
        "log_pressure": np.log(memory.total / c.memory),
        "states_share": (memory.weights + memory.gradients + memory.optimizer + memory.adapters) / c.memory,
        "activation_share": (memory.activations + memory.logits) / c.memory,
        "collected_share": gathered.of_layers(c) / c.memory,
        "fsdp": c.fsdp.astype(float),
        "paged": c.paged.astype(float),
        "paging": np.log1p(cost_model.paging_bytes(c) / 1e9),
        "reentrant": c.reentrant.astype(float),
        "step": np.log(step),
        "rate": np.log(rate),
        "rate_per_gpu": np.log(rate / c.gpus),
    }


def matrix(configs: Sequence[Config], c: ConfigTable, vocabulary: dict[str, dict[str, float]]) -> Array:
    """Return the features of the columns, of shape (n, k).

    `vocabulary` maps texts (software, protocol) to numbers; an unseen one is the usual. Settings read
    by their types come last: a predictor that was stored before a setting was added still loads.
    """
    settings = [_column(configs, read) for read in SETTINGS.values()]
    texts = [
        np.array([codes.get(getattr(x, name) or "", codes.get("", np.nan)) for x in configs], dtype=float)
        for name, codes in vocabulary.items()
    ]
    return np.column_stack([*physics(c).values(), *settings, *texts, c.settings])


def validity_matrix(configs: Sequence[Config], c: ConfigTable, pressure: Array) -> Array:
    """Return the features for validity, shape (n, k).

    They are those of `matrix` without texts and with the usual value where a setting is unknown.

    pressure: ln(peak / capacity) as far as peaks were measured, shape (n,).
    """
    settings = [
        np.where(np.isnan(column := _column(configs, read)), USUAL.get(name, 0.0), column)
        for name, read in SETTINGS.items()
        if name != "lora_r"
    ]
    others = [c.setting(name) for name in config_space.OTHER_SETTINGS]
    return np.column_stack([*physics(c).values(), *settings, pressure, *others])


def vocabulary(configs: Sequence[Config], at_least: int = 15) -> dict[str, dict[str, float]]:
    """Number the texts that occur often enough to learn from.

    The empty text gets the number of the most common one.
    """
    found: dict[str, dict[str, float]] = {}
    for name in ("software", "run_protocol"):
        counts = Counter(getattr(x, name) for x in configs if getattr(x, name))
        often = sorted(text for text, rows in counts.items() if rows >= at_least)
        codes = {text: float(code) for code, text in enumerate(often)}
        if codes:
            codes[""] = codes[max(often, key=lambda text: counts[text])]
        found[name] = codes
    return found


def _column(configs: Sequence[Config], read: Callable[[Config], float | None]) -> Array:
    return np.array([np.nan if (value := read(x)) is None else value for x in configs], dtype=float)
