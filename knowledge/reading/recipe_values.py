"""The values of a reading that a new job takes, and why the rest is not taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from knowledge.core.domain import adapted_layers
from knowledge.reading.types import FieldValue, Reading
from trainer.recipes import DEFAULT_RECIPE, Binds, ParamError

READ_AS = {"warmup_share": "warmup"}  # parameters whose field has another name
SCHEDULES = {"constant_with_warmup": "constant"}
LEAST_CONFIDENCE = 0.66  # two of three votes of a language model


@dataclass(frozen=True, slots=True)
class Taken:
    """Parameters that a new job takes from a reading, by name.

    `params` are settled at submission; others are left to the recommendation, or refused. `sources` are
    where each stands.
    """

    params: dict[str, Any]
    left: dict[str, Any]
    refused: dict[str, str]
    sources: dict[str, FieldValue]


def taken(reading: Reading) -> Taken:
    """Return the values that fill the form of a new job.

    Where it runs is left to the recommendation.
    """
    params: dict[str, Any] = {}
    left: dict[str, Any] = {}
    refused: dict[str, str] = {}
    sources: dict[str, FieldValue] = {}
    for name, param in DEFAULT_RECIPE.params.items():
        value = reading.values.get(READ_AS.get(name, name))
        if value is None or value.confidence < LEAST_CONFIDENCE:
            continue
        if value.unit == "steps" and value.value:
            refused[name] = f"{_shown(value)} steps: give their share of all steps."
            continue
        try:
            cleaned = param.clean(_in_kind(value, param.kind))
        except ValueError as wrong:
            refused[name] = f"{_shown(value)} {wrong}."
            continue
        sources[name] = value
        (params if param.binds is Binds.SUBMIT else left)[name] = cleaned
    try:
        DEFAULT_RECIPE.clean(params)
    except ParamError as wrong:
        for name, why in wrong.fields.items():
            params.pop(name, None)
            refused[name] = f"It {why}."
    return Taken(params, left, refused, sources)


def _in_kind(value: FieldValue, kind: type) -> Any:
    """Whole numbers may be written as 3.0, others as 3, and adapted layers one by one."""
    if kind is str and isinstance(value.value, list):
        names = ", ".join(map(str, value.value))
        return adapted_layers.placement(names) or names
    if kind is int and isinstance(value.value, float) and value.value.is_integer():
        return int(value.value)
    if isinstance(value.value, str) and value.value in SCHEDULES:
        return SCHEDULES[value.value]
    return float(value.value) if kind is float and type(value.value) is int else value.value


def _shown(value: FieldValue) -> str:
    return ", ".join(map(str, value.value)) if isinstance(value.value, list) else str(value.value)
