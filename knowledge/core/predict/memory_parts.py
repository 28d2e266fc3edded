"""Where the memory of a forecast goes: the peak of one GPU by what holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable, Hardware, columns
from knowledge.core.analytic.peak_memory import GATHERED, PeakMemory
from knowledge.core.domain.types import Option
from knowledge.core.model.fitted_model import FittedModel, hardware_kind

NAMES = {"context": "overhead", "optimizer": "optimiser"}
SOFTWARE = ("activations", "logits", GATHERED)  # what hangs on the software, and so bears what physics misses
SMALLEST = 0.005  # of the peak: smaller parts would only be noise


def memory_parts(
    option: Option, knowledge: Mapping[str, FittedModel], here: Mapping[str, Hardware]
) -> dict[str, float]:
    """Bytes of one GPU at the peak by what holds them, largest first: as fitted to history, else the prior's.

    knowledge: what was learnt, by kind of hardware. What follows from the model's size stays; activations,
    logits and what is put together from shards are scaled so that the whole is the option's forecast.
    """
    parts = _physics(knowledge.get(hardware_kind(option.config)), columns([option.config], here))
    peak, soft = option.peak_memory_bytes.value, sum(parts.get(name, 0.0) for name in SOFTWARE)
    left = peak - (sum(parts.values()) - soft)
    if left <= 0 or soft <= 0:
        whole = sum(parts.values())
        parts = {name: value * peak / whole for name, value in parts.items()}
    else:
        parts = {name: value * (left / soft if name in SOFTWARE else 1) for name, value in parts.items()}
    large = sorted((item for item in parts.items() if item[1] > SMALLEST * peak), key=lambda item: -item[1])
    return {NAMES.get(name, name): value for name, value in large}


def _physics(known: FittedModel | None, c: ConfigTable) -> dict[str, float]:
    """The parts of the one row of `c`."""
    physics = known.memory.physics_ if known and known.memory else None
    if isinstance(physics, PeakMemory):
        return {name: float(values[0]) for name, values in physics.held(c).items()}
    stated = cost_model.memory(c)
    return {field.name: float(getattr(stated, field.name)[0]) for field in fields(stated)}
