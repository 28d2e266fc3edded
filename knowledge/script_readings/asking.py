"""A worker lets the language model read what the rules left open."""

from __future__ import annotations

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue import UnknownModel
from knowledge.language.chat import NoAnswer
from knowledge.models import ModelState, ScriptReading
from knowledge.reading.agent.runs import read_with_model
from knowledge.reading.stored_form import from_stored, value_row
from knowledge.reading.types import Tree
from knowledge.script_readings.trees import manifest_of, reader_server

MOST_AT_ONCE = 3  # of a minute each; other work waits meanwhile


def ask_next_script() -> bool:
    """Let the model read one tree that waits; whether there was one."""
    waiting = ScriptReading.objects.filter(model_state=ModelState.ASKED).order_by("asked_at")
    row = waiting.select_related("tree", "tree__owner").first()
    if row is None:
        return False
    mine = ScriptReading.objects.filter(pk=row.pk, model_state=ModelState.ASKED, asked_at=row.asked_at)
    if mine.update(model_state=ModelState.READING):
        state, note, added = _answer(row)
        found = ScriptReading.objects.filter(pk=row.pk, model_state=ModelState.READING, asked_at=row.asked_at)
        found.update(model_state=state, model_note=note[:300], added={**row.added, **added})
    return True


def _answer(row: ScriptReading) -> tuple[ModelState, str, dict[str, object]]:
    server = reader_server(row.tree.owner)
    if server is None:
        return ModelState.FAILED, "A team does not agree to a language model any more.", {}
    source = Tree(manifest_of(row.tree).files, row.tree.command or None)
    try:
        values = read_with_model(server, source, from_stored(row.rules), row.wanted, _catalogued)
    except NoAnswer as failed:
        return ModelState.FAILED, f"{failed}.", {}
    return ModelState.DONE, "", {name: value_row(value) for name, value in values.items()}


def _catalogued(name: str) -> str:
    try:
        return portal_catalogue().model(name).model_name
    except UnknownModel:
        return name
