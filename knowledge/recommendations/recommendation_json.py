"""A recommendation in plain values, as programs read it.

It is the API's answer and the command's output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from knowledge.core.domain.types import Option, Recommendation, Source
from trainer.recipes import DEFAULT_RECIPE


def recommendation_json(recommendation: Recommendation) -> dict[str, Any]:
    """The recommendation, with a `step_s` in every option."""
    return {
        "params": {name: asdict(choice) for name, choice in recommendation.chosen.items()},
        "constants": {name: asdict(constant) for name, constant in DEFAULT_RECIPE.constants.items()},
        "options": [{**option.as_json(), "step_s": step_s(option)} for option in recommendation.options],
        "pareto": list(recommendation.pareto),
        "memory_parts": dict(recommendation.memory_parts),
        "memory_savings": [
            {"changes": changes_json(saving.changes), "saved_bytes": saving.saved_bytes}
            for saving in recommendation.memory_savings
        ],
        "evidence": [asdict(near) for near in recommendation.evidence],
        "notes": list(recommendation.notes),
        "trade": recommendation.trade,
        "predictor_version": recommendation.predictor_version,
    }


def changes_json(changes: Mapping[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    """Changes of parameters, as programs read them."""
    return {name: {"from": old, "to": new} for name, (old, new) in changes.items()}


def step_s(option: Option) -> float | None:
    """Seconds of one optimiser step on all GPUs; None where nothing was predicted."""
    if option.source is Source.DEFAULT:
        return None
    tokens = option.padded_tokens or option.config.tokens_per_sample
    return option.config.effective_batch_size * tokens / option.tokens_per_second.value
