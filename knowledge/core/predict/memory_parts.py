"""Where the memory of a prediction goes: the peak of one GPU by what holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.analytic.peak_memory import GATHERED, PeakMemory
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, Option
from knowledge.core.model.fitted_model import FittedModel, hardware_kind

NAMES = {
    "cached": "cached blocks",
    "context": "overhead",
    "communicators": "communication",
    "optimizer": "optimiser",
    "gathered": GATHERED,
    "copies": "working copies",
}
SOFTWARE = (
    "activations",
    "logits",
    "cached",
    GATHERED,
    "gathered",
    "copies",
)  # what hangs on the software, and so bears what physics misses
SMALLEST = 0.005  # of the peak: smaller parts are told together, but for the base weights
ALWAYS, REST = "weights", "all else"


def memory_parts(
    option: Option, knowledge: Mapping[str, FittedModel], catalogue: Catalogue
) -> dict[str, float]:
    """Return the bytes of one GPU at the peak by what holds them.

    The largest come first. They are as fitted to history, else the prior's. Together they are the option's
    peak; what each holds little of comes last, as one part.

    knowledge: what was learnt, by kind of hardware.
    """
    peak = option.peak_memory_bytes.value
    found = scaled_parts(option, (), knowledge, catalogue)
    parts = {name: float(values[0]) for name, values in found.items()}
    large = {name: value for name, value in parts.items() if value > SMALLEST * peak or name == ALWAYS}
    rest = peak - sum(large.values())
    largest_first = sorted(large.items(), key=lambda item: -item[1])
    named = {NAMES.get(name, name): value for name, value in largest_first}
    return named | ({REST: rest} if rest > 0.5 else {})


def scaled_parts(
    option: Option, others: Sequence[Config], knowledge: Mapping[str, FittedModel], catalogue: Catalogue
) -> dict[str, Array]:
    """Return the parts of the option's configuration, then of others.

    Each has the shape (1 + others,). The parts of the first are scaled to make the option's prediction, and
    the others' alike. Parts that follow from the model's size stay; activations, logits and weights put
    together from shards bear the error of physics, or all parts where these are too small.
    """
    known = knowledge.get(hardware_kind(option.config))
    if known and known.own_peaks.by_physics([option.config])[0]:
        known = None
    parts = _physics(known, columns([option.config, *others], catalogue))
    own = {name: float(values[0]) for name, values in parts.items()}
    peak, whole = option.peak_memory_bytes.value, sum(own.values())
    soft = sum(own.get(name, 0.0) for name in SOFTWARE)
    left = peak - (whole - soft)
    if left <= 0 or soft <= 0:
        return {name: values * (peak / whole) for name, values in parts.items()}
    return {name: values * (left / soft if name in SOFTWARE else 1.0) for name, values in parts.items()}


def _physics(known: FittedModel | None, c: ConfigTable) -> dict[str, Array]:
    """The parts of each row of `c`."""
    physics = known.memory.physics_ if known and known.memory else None
    if isinstance(physics, PeakMemory):
        return physics.held(c)
    stated = cost_model.memory(c)
    return {field.name: getattr(stated, field.name) for field in fields(stated)}
