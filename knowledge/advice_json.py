"""Advice in plain values, as programs read it: the API's answer and the command's output."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from knowledge.core.domain.types import Advice, Option, Source


def advice_json(advice: Advice) -> dict[str, Any]:
    """The advice, with a `step_s` in every option."""
    return {
        "params": {name: asdict(choice) for name, choice in advice.chosen.items()},
        "options": [{**option.as_json(), "step_s": step_s(option)} for option in advice.options],
        "pareto": list(advice.pareto),
        "memory_parts": dict(advice.memory_parts),
        "evidence": [asdict(near) for near in advice.evidence],
        "notes": list(advice.notes),
        "predictor_version": advice.predictor_version,
    }


def step_s(option: Option) -> float | None:
    """Seconds of one optimiser step on all GPUs; None where nothing was foretold."""
    if option.source is Source.DEFAULT:
        return None
    tokens = option.padded_tokens or option.config.tokens_per_sample
    return option.config.effective_batch_size * tokens / option.tokens_per_second.value
