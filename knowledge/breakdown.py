"""Where the memory of a forecast goes."""

from __future__ import annotations

from dataclasses import fields

from knowledge.core import prior
from knowledge.core.columns import columns, hardware
from knowledge.core.types import Inventory, Option, Source

NAMES = {"context": "overhead", "optimizer": "optimiser"}
SMALLEST = 0.005  # of the peak: smaller parts would only be noise


def memory_parts(option: Option, inventory: Inventory) -> dict[str, float]:
    """Bytes of one GPU at the peak by what holds them, largest first; empty where nothing was foretold.

    Parts are the prior's, scaled to the option's forecast, which measurements have corrected.
    """
    if option.source is Source.DEFAULT:
        return {}
    memory = prior.memory(columns([option.config], hardware(inventory)))
    stated = {field.name: float(getattr(memory, field.name)[0]) for field in fields(memory)}
    whole = sum(stated.values())
    scale = option.peak_memory_bytes.value / whole
    large = sorted((item for item in stated.items() if item[1] > SMALLEST * whole), key=lambda item: -item[1])
    return {NAMES.get(name, name): scale * value for name, value in large}
