"""The values that a model may add to the reading of the rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from knowledge.reading.resolving import same
from knowledge.reading.types import FIELDS, MODEL, FieldValue, Origin, Reading, Statement

STANDS = 0.85


def open_fields(reading: Reading, carried: Collection[str] = ()) -> tuple[str, ...]:
    """The fields without a sure value or a contradiction: a model may be asked."""
    torn = {part for name in reading.contradictions for part in name.split("+")}
    sure = {name for name, value in reading.values.items() if value.confidence >= STANDS}
    return tuple(name for name in FIELDS if name not in torn | sure | set(carried))


def merged(reading: Reading, added: Mapping[str, FieldValue]) -> Reading:
    """A sure value of the rules stands, a model's fills what is null.

    Where both differ, both are shown and neither is filled.
    """
    values: dict[str, FieldValue] = dict(reading.values)
    torn = dict(reading.contradictions)
    allowed = open_fields(reading)
    for name, value in added.items():
        if name not in allowed:
            continue
        known = values.get(name)
        if known is None:
            values[name] = replace(value, by=MODEL)
        elif not same(known.value, value.value):
            del values[name]
            torn[name] = (_statement(name, known), _statement(name, value, "language model"))
    return replace(reading, values=values, contradictions=torn)


def _statement(field: str, value: FieldValue, key: str = "") -> Statement:
    place: Any = value.evidence[0]
    return Statement(field=field, value=value.value, place=place, origin=Origin.DEFAULT, key=key)
