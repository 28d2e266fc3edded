"""From the proposals that hold to the fields of the form, and to what is open."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from itertools import pairwise
from typing import Any

from portal.intents.core.names.model_index import Variant, meant_model, pieces_of, size_of
from portal.intents.core.readers.models import SIZE
from portal.intents.core.spans import Sentence
from portal.intents.core.types import INFERRED, STATED, FilledField, Proposal

UNTIL = "deadline_at"
_OR = re.compile(r"\s*(?:,\s*)?(?:or|/|vs\.?|versus)\s*(?:with\s+|a\s+)?")
_BESIDE = re.compile(
    r"[\s,.-]*(?:or|vs|err|um|no|sorry|wait|actually|rather)(?:[\s,]+(?:perhaps|maybe|rather|the|an?))*[\s,]*"
)
_VERSION = re.compile(r"\d+(?:\.\d+)*")
MOST_VERSIONS = 2  # that are named beside the one that was taken
DEFAULT_HOURS = (time(18), time(9), time(0))


@dataclass
class Draft:
    """The fields that have been decided so far.

    `open` holds the choices of fields that a question is about.
    """

    text: Sentence
    fields: dict[str, FilledField] = field(default_factory=dict)
    open: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    complaints: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def fill(self, proposal: Proposal, value: Any = None, *, origin: str = "") -> None:
        """Set a proposal's field."""
        words = self.text.words(proposal.start, proposal.end)
        given = proposal.value if value is None else value
        self.fields[proposal.field] = FilledField(
            value=given, origin=origin or proposal.origin, words=words, note=proposal.note
        )


def combined(proposals: Sequence[Proposal], text: Sentence) -> Draft:
    """Settle each field by its proposals; two values of a field are left open."""
    draft = Draft(text)
    by_field: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        by_field.setdefault(proposal.field, []).append(proposal)
    wants_instruct = bool(by_field.pop("@instruct", ()))
    refused = by_field.pop("@refused", [])
    for name, own in by_field.items():
        if name.startswith("@") or not name or name == "goal":
            continue
        if name == "model":
            _model(draft, own, wants_instruct)
        else:
            _settle(draft, name, own)
    if refused and "model" not in draft.fields:
        draft.complaints["model"] = refused[0].complaint
    _exclusive(draft)
    _goal(draft, by_field.get("goal", []))
    return draft


def _settle(draft: Draft, name: str, own: list[Proposal]) -> None:
    valued = [c for c in own if c.value is not None]
    strong = [c for c in valued if not c.weak] or ([] if any(not c.weak for c in own) else valued)
    if (
        name == "tuning"
        and {c.value for c in strong} == {"lora", "qlora"}
        and not _either(draft.text, strong)
    ):
        strong = [c for c in strong if c.value == "qlora"]  # lora with 4-bit weights
    if name == UNTIL:
        strong = _precise(strong)
    stated = [c for c in strong if c.origin == STATED]
    strong = stated or strong
    values = list(dict.fromkeys(c.value for c in strong))
    if len(values) == 1:
        draft.fill(strong[-1])
    elif values:
        draft.open[name] = tuple(values)
    elif choices := next((c.choices for c in own if c.choices), ()):
        draft.open[name] = choices
    if complaint := next((c.complaint for c in own if c.complaint), ""):
        draft.complaints[name] = complaint


def _either(text: Sentence, proposals: list[Proposal]) -> bool:
    """Does an "or" stand between proposals?"""
    return any(_OR.fullmatch(text.low, a.end, b.start) for a, b in pairwise(proposals))


def _precise(proposals: list[Proposal]) -> list[Proposal]:
    """The deadlines of one day that have an hour of their own."""
    days = {c.value.date() for c in proposals}
    exact = [c for c in proposals if c.value.time() not in DEFAULT_HOURS]
    return exact if len(days) == 1 and exact else proposals


def _model(draft: Draft, own: list[Proposal], wants_instruct: bool) -> None:
    named = list(dict.fromkeys(c.value for c in own if c.value is not None))
    sizes = [c for c in own if c.note.startswith(SIZE)]
    families = [c for c in own if c.value is None and not c.note.startswith(SIZE)]
    if len(named) == 1:
        proposal = next(c for c in own if c.value == named[0])
        if others := _other_sizes(draft.text, proposal, sizes):
            draft.open["model"] = (named[0], *others)
        else:
            meant = _instructed(proposal) if wants_instruct else None
            draft.fill(replace(proposal, note=_other_versions(proposal, meant or proposal.value)), meant)
        return
    if named:
        draft.open["model"] = tuple(named)
        return
    if not own:
        return
    found: list[Variant] = [v for c in families or sizes for v in c.choices if v]
    if families and sizes:
        fitting = {v.value for c in sizes for v in c.choices if v}
        exact = [v for v in found if any(c.note.removeprefix(SIZE) in v.pieces for c in sizes)]
        found = exact or [v for v in found if v.value in fitting]
        if len({v.row for v in found}) == 1 and not families[0].note:
            said = ["instruct"] if wants_instruct else []
            said += [p for p in found[0].pieces if all(p in v.pieces for v in found)]
            if value := meant_model([v for v in found if set(said) <= set(v.pieces)], said):
                draft.fill(families[0], value)
                return
    if wants_instruct:
        found = [v for v in found if "instruct" in v.pieces] or found
    draft.open["model"] = tuple(found)


def _other_sizes(text: Sentence, named: Proposal, sizes: list[Proposal]) -> list[str]:
    """Return models of the named one's family in a size beside it.

    For example in "8b, sorry, the 70b".
    """
    family = {piece for piece in pieces_of(named.value.rpartition("/")[2]) if not size_of(piece)}
    beside = [c for c in sizes if _BESIDE.fullmatch(text.low, named.end, c.start)]
    found = [v.value for c in beside for v in c.choices if v and v.owned and family <= set(v.pieces)]
    return list(dict.fromkeys(found))


def _other_versions(proposal: Proposal, value: str) -> str:
    """Name the models that the words fit as well, as they differ in versions alone."""
    chosen = next((v for v in proposal.choices if v.value == value), None)
    if chosen is None:
        return proposal.note
    kind = _without_version(chosen)
    others = (v for v in proposal.choices if v.owned and v.row != chosen.row and _without_version(v) == kind)
    names = list(dict.fromkeys(v.value for v in others))[:MOST_VERSIONS]
    return f"{' and '.join(names)} also fit{'s' if len(names) == 1 else ''}" if names else proposal.note


def _without_version(variant: Variant) -> Counter[str]:
    owner, _, _ = variant.value.rpartition("/")
    kept = {piece: n for piece, n in variant.pieces.items() if piece != "v" and not _VERSION.fullmatch(piece)}
    return Counter({f"{owner}/": 1, **kept})


def _instructed(proposal: Proposal) -> str | None:
    """Return the variant of a named model that follows instructions.

    It is one of the same row, if the catalogue has one.
    """
    row = next((v.row for v in proposal.choices if v.value == proposal.value), None)
    found = [v for v in proposal.choices if v.row == row and v.owned and "instruct" in v.pieces]
    return min(found, key=lambda v: sum(v.pieces.values())).value if found else None


def _exclusive(draft: Draft) -> None:
    """Epochs and steps exclude each other: both stay open."""
    epochs, steps = draft.fields.get("epochs"), draft.fields.get("max_steps")
    if epochs and steps:
        draft.open["epochs"] = (("epochs", epochs.value), ("max_steps", steps.value))
        del draft.fields["epochs"], draft.fields["max_steps"]


def _goal(draft: Draft, said: list[Proposal]) -> None:
    """The goal that is said, or the one that a limit makes."""
    words = {c.value for c in said}
    until, budget = draft.fields.get(UNTIL), draft.fields.get("budget")
    if until or budget:
        chosen = "budget" if budget and (not until or "fastest" in words) else "deadline"
        words_of = {"deadline": until.words if until else None, "budget": budget.words if budget else None}
        note = "a deadline was given" if chosen == "deadline" else "a budget was given"
        draft.fields["goal"] = FilledField(value=chosen, origin=INFERRED, words=words_of[chosen], note=note)
    elif {"fastest", "cheapest"} <= words:
        span = draft.text.words(min(c.start for c in said), max(c.end for c in said))
        draft.fields["goal"] = FilledField(
            value="balanced", origin=INFERRED, words=span, note="both fast and cheap were asked for"
        )
    elif len(words) == 1:
        draft.fill(said[-1])
    elif words:
        draft.fill(next(c for c in said if c.value != "balanced"))


def shown(value: Any) -> Any:
    """A value as JSON has it."""
    return value.isoformat() if isinstance(value, datetime) else value


def values_of(fields: Mapping[str, FilledField]) -> dict[str, Any]:
    """Fields as a body for programs."""
    return {name: shown(one.value) for name, one in fields.items()}
