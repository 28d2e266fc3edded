"""The values of a reading that a new job takes, and why the rest is not taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from knowledge.core.domain import adapted_layers
from knowledge.reading.types import FieldValue, Reading
from trainer.recipes import DEFAULT_RECIPE, Binds, ParamError

LEAST_CONFIDENCE = 0.66  # two of three votes of a language model


@dataclass(frozen=True, slots=True)
class Taken:
    """Parameters that a new job takes from a reading, by name.

    `params` are settled at submission; others are left to the recommendation, or refused.
    """

    params: dict[str, Any]
    left: dict[str, Any]
    refused: dict[str, str]


def taken(reading: Reading) -> Taken:
    """Return the values that fill the form of a new job.

    Where it runs is left to the recommendation.
    """
    params: dict[str, Any] = {}
    left: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for name, param in DEFAULT_RECIPE.params.items():
        value = reading.values.get(name)
        if value is None or value.confidence < LEAST_CONFIDENCE:
            continue
        try:
            cleaned = param.clean(_in_kind(value, param.kind))
        except ValueError as wrong:
            refused[name] = f"{_shown(value)} {wrong}."
            continue
        (params if param.binds is Binds.SUBMIT else left)[name] = cleaned
    try:
        DEFAULT_RECIPE.clean(params)
    except ParamError as wrong:
        for name, why in wrong.fields.items():
            params.pop(name, None)
            refused[name] = f"It {why}."
    return Taken(params, left, refused)


def _in_kind(value: FieldValue, kind: type) -> Any:
    """Whole numbers may be written as 3.0, others as 3, and adapted layers one by one."""
    if kind is str and isinstance(value.value, list):
        names = ", ".join(map(str, value.value))
        return adapted_layers.placement(names) or names
    if kind is int and isinstance(value.value, float) and value.value.is_integer():
        return int(value.value)
    return float(value.value) if kind is float and type(value.value) is int else value.value


def _shown(value: FieldValue) -> str:
    return ", ".join(map(str, value.value)) if isinstance(value.value, list) else str(value.value)
