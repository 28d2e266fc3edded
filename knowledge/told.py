"""Advice in plain values, as programs read it: the API's answer and the command's output."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from knowledge.core import prior
from knowledge.core.columns import columns, hardware
from knowledge.core.types import Advice, Inventory, Option, Source

NAMES = {"context": "overhead", "optimizer": "optimiser"}
PASSING = ("activations", "logits")
SMALLEST = 0.005  # of the peak: smaller parts would only be noise


def advice_json(advice: Advice, inventory: Inventory) -> dict[str, Any]:
    """The advice, with a `step_s` in every option and the `memory_parts` of the first one."""
    return {
        "params": {name: asdict(choice) for name, choice in advice.chosen.items()},
        "options": [{**option.as_json(), "step_s": step_s(option)} for option in advice.options],
        "pareto": list(advice.pareto),
        "memory_parts": memory_parts(advice.best, inventory) if advice.best else {},
        "evidence": [asdict(execution) for execution in advice.evidence],
        "notes": list(advice.notes),
        "predictor_version": advice.predictor_version,
    }


def step_s(option: Option) -> float | None:
    """Seconds of one optimiser step on all GPUs; None where nothing was foretold."""
    if option.source is Source.DEFAULT:
        return None
    tokens = option.padded_tokens or option.config.tokens_per_sample
    return option.config.effective_batch_size * tokens / option.tokens_per_second.value


def memory_parts(option: Option, inventory: Inventory) -> dict[str, float]:
    """Bytes of one GPU at the peak by what holds them, largest first; empty where nothing was foretold.

    Parts are the prior's. What follows from the model's size stays; activations and logits, which hang on the
    software, are scaled so that the whole is the option's forecast, which measurements have corrected.
    """
    if option.source is Source.DEFAULT:
        return {}
    memory = prior.memory(columns([option.config], hardware(inventory)))
    stated = {field.name: float(getattr(memory, field.name)[0]) for field in fields(memory)}
    peak, passing = option.peak_memory_bytes.value, sum(stated[name] for name in PASSING)
    left = peak - (sum(stated.values()) - passing)
    if left <= 0 or passing <= 0:
        parts = {name: value * peak / sum(stated.values()) for name, value in stated.items()}
    else:
        parts = {name: value * (left / passing if name in PASSING else 1) for name, value in stated.items()}
    large = sorted((item for item in parts.items() if item[1] > SMALLEST * peak), key=lambda item: -item[1])
    return {NAMES.get(name, name): value for name, value in large}
