"""The statements of a script, as the values of a submission."""

from __future__ import annotations

from knowledge.reading.manifest import ScriptManifest
from knowledge.reading.reading_json import evidence
from knowledge.reading.recipe_values import Taken
from knowledge.reading.types import FieldValue, Location, Reading
from scheduler.models import ReadSource
from scheduler.services.provenance.read_values import DERIVED, STATED, ReadValue, ReadValues


def read_values(reading: Reading, job: Taken, manifest: ScriptManifest) -> ReadValues:
    """The values that a new job takes of a script, with the lines that state them."""
    values = {name: _value(value, job.sources[name], manifest) for name, value in job.params.items()}
    model = reading.values.get("base_model")
    if model is not None and isinstance(model.value, str):
        values["model"] = _value(model.value, model, manifest)
    return ReadValues(source=ReadSource.SCRIPT, values=values)


def shown_place(place: Location, manifest: ScriptManifest) -> str:
    """Where something stands, for people."""
    found = evidence(place, manifest)
    return "the command" if found["file"] == "command" else f"{found['file']}, line {found['line']}"


def _value(value: object, source: FieldValue, manifest: ScriptManifest) -> ReadValue:
    return ReadValue(
        value=value,
        origin=DERIVED if source.derived else STATED,
        because=shown_place(source.evidence[0], manifest),
    )
