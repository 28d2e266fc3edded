"""Where the memory of a prediction goes: the peak of one GPU by what holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.analytic.peak_memory import GATHERED, PeakMemory
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Option
from knowledge.core.model.fitted_model import FittedModel, hardware_kind

NAMES = {"context": "overhead", "optimizer": "optimiser"}
SOFTWARE = ("activations", "logits", GATHERED)  # what hangs on the software, and so bears what physics misses
SMALLEST = 0.005  # of the peak: smaller parts are told together, but for the base weights
ALWAYS, REST = "weights", "all else"


def memory_parts(
    option: Option, knowledge: Mapping[str, FittedModel], catalogue: Catalogue
) -> dict[str, float]:
    """Return the bytes of one GPU at the peak by what holds them.

    The largest come first. They are as fitted to history, else the prior's. Together they are the option's
    peak; what each holds little of comes last, as one part.

    knowledge: what was learnt, by kind of hardware. What follows from the model's size stays; activations,
    logits and what is put together from shards are scaled so that the whole is the option's prediction.
    """
    parts = _physics(knowledge.get(hardware_kind(option.config)), columns([option.config], catalogue))
    peak, soft = option.peak_memory_bytes.value, sum(parts.get(name, 0.0) for name in SOFTWARE)
    left = peak - (sum(parts.values()) - soft)
    if left <= 0 or soft <= 0:
        whole = sum(parts.values())
        parts = {name: value * peak / whole for name, value in parts.items()}
    else:
        parts = {name: value * (left / soft if name in SOFTWARE else 1) for name, value in parts.items()}
    large = {name: value for name, value in parts.items() if value > SMALLEST * peak or name == ALWAYS}
    rest = peak - sum(large.values())
    told = sorted(large.items(), key=lambda item: -item[1])
    return {NAMES.get(name, name): value for name, value in told} | ({REST: rest} if rest > 0.5 else {})


def _physics(known: FittedModel | None, c: ConfigTable) -> dict[str, float]:
    """The parts of the one row of `c`."""
    physics = known.memory.physics_ if known and known.memory else None
    if isinstance(physics, PeakMemory):
        return {name: float(values[0]) for name, values in physics.held(c).items()}
    stated = cost_model.memory(c)
    return {field.name: float(getattr(stated, field.name)[0]) for field in fields(stated)}
