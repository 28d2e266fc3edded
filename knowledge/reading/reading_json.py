"""A reading as JSON, for programs and the command line."""

from __future__ import annotations

from typing import Any

from knowledge.reading.manifest import ScriptManifest
from knowledge.reading.recipe_values import taken
from knowledge.reading.types import COMMAND_FILE, FieldValue, Location, Reading, Statement


def as_json(reading: Reading, manifest: ScriptManifest) -> dict[str, Any]:
    """Return a reading as JSON.

    It has fields with their evidence, contradictions, and what a new job would take of them.
    """
    job = taken(reading)
    return {
        "fields": {name: _field(value, manifest) for name, value in sorted(reading.values.items())},
        "contradictions": {
            name: [_statement(one, manifest) for one in found]
            for name, found in reading.contradictions.items()
        },
        "unsupported": list(reading.unsupported),
        "unknown_keys": list(reading.unknown_keys),
        "unreadable": dict(reading.unreadable),
        "left_out": manifest.left_out,
        "job": {"parameters": job.params, "left_to_recommendation": job.left, "refused": job.refused},
    }


def _field(value: FieldValue, manifest: ScriptManifest) -> dict[str, Any]:
    return {
        "value": value.value,
        "confidence": value.confidence,
        "unit": value.unit,
        "derived": value.derived,
        "by": value.by,
        "evidence": [evidence(place, manifest) for place in value.evidence[:5]],
        "overridden": [_statement(one, manifest) for one in value.overridden[:5]],
    }


def _statement(one: Statement, manifest: ScriptManifest) -> dict[str, Any]:
    return {"value": one.value, **evidence(one.place, manifest)}


def evidence(place: Location, manifest: ScriptManifest) -> dict[str, Any]:
    """A place with the line that stands there."""
    lines = manifest.files.get(place.file, "").splitlines()
    shown = lines[place.line - 1].strip()[:200] if 0 < place.line <= len(lines) else ""
    return {
        "file": place.file if place.file != COMMAND_FILE else "command",
        "line": place.line,
        "text": shown,
    }
