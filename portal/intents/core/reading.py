"""Read a sentence.

The text is normalised, every reader proposes, proposals are resolved and combined, and at most one
question is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.intents.core import combine, resolve, unknown
from portal.intents.core.names.file_index import FileIndex
from portal.intents.core.names.model_index import ModelIndex, model_index
from portal.intents.core.question import question_of
from portal.intents.core.readers import (
    devices,
    files,
    goals,
    hearsay,
    labels,
    models,
    money,
    quantities,
    times,
    tunings,
)
from portal.intents.core.spans import Sentence, text_of
from portal.intents.core.types import INFERRED, IntentReading, Proposal, Setting

_BARRIER = ";"  # stands in place of names, so that no reader reads across or into them
_MARKS = re.compile(r"(?<![\w.])(?:v\d+|\d{4}|[a-z]\d{1,2})(?!\w)")


def read(
    typed: str,
    setting: Setting,
    files_of: FileIndex | None = None,
    pointed: Sequence[Proposal] = (),
) -> IntentReading:
    """The reading of a sentence about a job. It raises no error, whatever the text.

    pointed: proposals of somebody else, which hold where the readers made nothing of field and words.
    """
    text = text_of(typed)
    index, own = model_index(setting.catalogue), files_of or FileIndex(setting.files)
    proposals = _proposals(text, setting, index, own)
    chosen = resolve.scheduled(proposals, text)
    kept, denied = resolve.without_denied(chosen, text)
    kept = resolve.corrected(kept, denied, text)
    words = unknown.open_words(text, chosen)
    if not unknown.is_foreign(text):
        hit = _file_by_words(text, words, kept, own)
        kept += hit
        words = [w for w in words if not any(c.start <= w.start() < c.end for c in hit)]
    added = _unclaimed(pointed, kept, chosen, text)
    words = [w for w in words if not any(c.start < w.end() and w.start() < c.end for c in added)]
    draft = combine.combined([*kept, *added], text)
    if any(proposal.field == "gpu_model" for proposal in denied):
        draft.notes.append("A GPU model can be chosen, not excluded; choose another one below.")
    return IntentReading(
        fields=draft.fields,
        question=question_of(draft, setting, index),
        unknown=tuple(text.words(*word.span()) for word in words),
        complaints=draft.complaints,
        notes=(*draft.notes, *unknown.elsewhere(words)),
    )


_EITHER = {"epochs": "max_steps", "max_steps": "epochs"}


def _unclaimed(
    pointed: Sequence[Proposal], kept: Sequence[Proposal], chosen: Sequence[Proposal], text: Sentence
) -> list[Proposal]:
    fields = {c.field for c in kept}
    spans = _spans([*chosen, *kept])
    added: list[Proposal] = []
    for one in pointed:
        taken = any(one.start < end and start < one.end for start, end in spans)
        if taken or {one.field, _EITHER.get(one.field)} & fields:
            continue
        if not resolve.is_denied(text.low, one.start, one.end):
            added.append(one)
            fields.add(one.field)
            spans.append((one.start, one.end))
    return added


def _proposals(text: Sentence, setting: Setting, index: ModelIndex, own: FileIndex) -> list[Proposal]:
    named = list(files.read(text, own, setting.newest_job_file))
    literal = [c for c in named if c.weight >= 60]
    if unknown.is_foreign(text):
        return [*literal, *models.read(text, index, _spans(literal))]
    titles = list(labels.read(_open(text, literal), setting.teams))
    bare = _open(text, [*literal, *(c for c in titles if c.field == "name")])
    model_proposals = list(models.read(bare, index, []))
    refused = [c for c in model_proposals if c.field == "@refused"]
    rest = _open(bare, refused)
    return [
        *named,
        *titles,
        *model_proposals,
        *devices.read(rest, setting, _spans([c for c in model_proposals if c.field == "model" and c.value])),
        *quantities.read(rest),
        *tunings.read(rest),
        *money.read(rest, setting.currency),
        *times.read(rest, setting.now, setting.zone),
        *goals.read(rest),
        *hearsay.read(rest),
        *resolve.again(rest),
    ]


def _spans(proposals: Sequence[Proposal]) -> list[tuple[int, int]]:
    return [(c.start, c.end) for c in proposals]


def _open(text: Sentence, proposals: Sequence[Proposal]) -> Sentence:
    low = list(text.low)
    for proposal in proposals:
        low[proposal.start : proposal.end] = _BARRIER * (proposal.end - proposal.start)
    return Sentence(text.typed, "".join(low), text.origin)


def _file_by_words(
    text: Sentence, words: Sequence[re.Match[str]], kept: Sequence[Proposal], own: FileIndex
) -> list[Proposal]:
    """The file in whose name alone words of the sentence occur, unless one was named."""
    if any(c.field in (files.TRAINING, files.UNSEEN) for c in kept):
        return []
    hits: dict[str, re.Match[str]] = {}
    several: dict[frozenset[str], re.Match[str]] = {}
    for word in words:
        if resolve.is_denied(text.low, word.start(), word.end()):
            continue
        for part in re.finditer(r"[^\W\d_]+", word.group()):
            holding = own.holding(part.group())
            if len(holding) == 1:
                hits.setdefault(holding.pop(), word)
            elif holding:
                several.setdefault(frozenset(holding), word)
    if not hits and len(several) == 1:
        ((group, word),) = several.items()
        narrowed = own.narrowed(group, _MARKS.findall(text.low))
        hits = dict.fromkeys(narrowed, word)
    if len(hits) != 1:
        return []
    ((name, word),) = hits.items()
    field = files.role(text.low, word.start(), word.end())
    taken = any(c.field == field for c in kept)
    note = f"“{text.as_typed(*word.span())}” occurs in its name alone"
    proposal = Proposal(
        field=field, start=word.start(), end=word.end(), value=name, origin=INFERRED, note=note
    )
    return [] if taken else [proposal]
