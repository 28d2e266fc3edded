"""A reading as it is stored, and back."""

from __future__ import annotations

from typing import Any

from knowledge.reading.types import FieldValue, Location, Origin, Reading, Statement


def to_stored(reading: Reading) -> dict[str, Any]:
    """Return a reading as JSON that `from_stored` takes."""
    return {
        "values": {name: value_row(value) for name, value in reading.values.items()},
        "contradictions": {
            name: list(map(_statement, found)) for name, found in reading.contradictions.items()
        },
        "unsupported": list(reading.unsupported),
        "unknown_keys": list(reading.unknown_keys),
        "unreadable": dict(reading.unreadable),
    }


def from_stored(stored: dict[str, Any]) -> Reading:
    """The reading that was stored."""
    return Reading(
        values={name: value_of(row) for name, row in stored["values"].items()},
        contradictions={
            name: tuple(map(_statement_of, rows)) for name, rows in stored["contradictions"].items()
        },
        unsupported=tuple(stored["unsupported"]),
        unknown_keys=tuple(stored["unknown_keys"]),
        unreadable=stored["unreadable"],
    )


def value_row(value: FieldValue) -> dict[str, Any]:
    """One field's value as JSON that `value_of` takes."""
    return {
        "value": value.value,
        "confidence": value.confidence,
        "evidence": list(map(_place, value.evidence)),
        "unit": value.unit,
        "overridden": list(map(_statement, value.overridden)),
        "derived": value.derived,
        "by": value.by,
    }


def value_of(row: dict[str, Any]) -> FieldValue:
    """The value that was stored."""
    places = tuple(Location(*place) for place in row["evidence"])
    lost = tuple(map(_statement_of, row["overridden"]))
    return FieldValue(**{**row, "evidence": places, "overridden": lost})


def _statement(one: Statement) -> dict[str, Any]:
    return {
        "field": one.field,
        "value": one.value,
        "place": _place(one.place),
        "origin": one.origin.name,
        "key": one.key,
        "weight": one.weight,
        "unit": one.unit,
        "also": list(map(_place, one.also)),
    }


def _statement_of(row: dict[str, Any]) -> Statement:
    place, also = Location(*row["place"]), tuple(Location(*place) for place in row["also"])
    return Statement(**{**row, "place": place, "also": also, "origin": Origin[row["origin"]]})


def _place(place: Location) -> list[Any]:
    return [place.file, place.line, place.end_line]
