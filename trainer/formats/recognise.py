"""Which format a row is written in, and what its other fields mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.formats import chats, plain
from trainer.formats.lines import json_object
from trainer.formats.rows import Row
from trainer.formats.unused import Unused
from trainer.formats.values import is_empty


@dataclass(frozen=True, slots=True)
class Format:
    """A format and the fields that it understands.

    marks: fields that tell this format from others.
    further: what it understands besides.
    elsewhere: what others call its fields, for the remedy.
    """

    name: str
    marks: tuple[str, ...]
    further: tuple[str, ...]
    read: Callable[[Mapping[str, Any], Unused], Row]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    fields: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", frozenset((*self.marks, *self.further)))


_TOOLS = ("tools", "functions")
_ANSWERED = ("output", "response", "answer", "completion")
_SYSTEM = {"system_prompt": "system"}
FORMATS = (
    Format("chat", ("messages",), ("system", *_TOOLS), chats.messages, _SYSTEM),
    Format("sharegpt", ("conversations",), ("system", *_TOOLS), chats.conversations, _SYSTEM),
    Format(
        "alpaca",
        ("instruction",),
        ("output", "input", "system", "history"),
        chats.alpaca,
        {"context": "input", **dict.fromkeys(_ANSWERED[1:3], "output"), **_SYSTEM},
    ),
    Format(
        "prompt_completion",
        ("prompt", "completion"),
        _TOOLS,
        plain.prompt_completion,
        {"question": "prompt", **dict.fromkeys(_ANSWERED[:3], "completion")},
    ),
    Format("text", ("text",), (), plain.text),
)
_BY_MARK = {mark: form for form in FORMATS for mark in form.marks}
_KNOWN = frozenset(("context", *_SYSTEM)).union(*(form.fields for form in FORMATS))
_NEEDS = (
    "needs the field messages (a chat), conversations (ShareGPT), instruction and output (Alpaca), prompt and"
    " completion, or text"
)
_FEW = 100  # texts that are looked for in another one: each takes time
_ASKED = ("question", "query", "context", "input")

_PAIRS = (
    "is preference data, and training learns from good answers alone: keep the good answer of each row as"
    " its completion or last message, and remove the other from all rows"
)
_RATED = (
    "tells good answers from bad ones, and training learns all answers alike: keep the rows with good"
    " answers and remove the field from all of them"
)
_WEIGHED = "weighs a row, but all rows count alike: remove the field from all rows"
_MEDIA = "is not text, and only texts can be trained: leave such rows out and remove the field from all rows"
_ONE_TURN = (
    "holds text with role: one turn of a conversation, which would be learnt without the others; write each"
    " conversation as one row with messages"
)
_REFUSED = {
    **dict.fromkeys(("chosen", "rejected", "chosen_response", "rejected_response"), _PAIRS),
    **dict.fromkeys(("preferred_output", "non_preferred_output"), _PAIRS),
    **dict.fromkeys(("rejected_messages", "rejected_completion", "rejected_output"), _PAIRS),
    **dict.fromkeys(("label", "labels", "kto_tag"), _RATED),
    **dict.fromkeys(("weight", "sample_weight", "loss_weight"), _WEIGHED),
    **dict.fromkeys(("image", "images", "video", "videos", "audio", "audios"), _MEDIA),
}


def parse_row(line: bytes, unused: Unused) -> tuple[Format, Row]:
    """One line as a row. Raises ValueError with a sentence that names the field."""
    raw = {name: value for name, value in json_object(line).items() if value is not None}
    if not raw.keys().isdisjoint(_REFUSED):
        _refuse_other_aims(raw)
    form = _format(raw)
    if not raw.keys() <= form.fields:
        others = [name for name in raw if name not in form.fields and not is_empty(raw[name])]
        if form.name == "text" and not is_empty(raw.get("role")):
            raise ValueError(_ONE_TURN)
        _refuse_meaningful(raw, [name for name in others if not _is_told(name, raw, form)], form)
        unused.note(others)
    return form, form.read(raw, unused)


def _is_told(name: str, raw: Mapping[str, Any], form: Format) -> bool:
    """Does a field that means something elsewhere only repeat what the row says?

    Many public files have the same row in several forms: each of its texts is one of the row's own, or it
    holds all of them, as the text that another trainer would make of the row.
    """
    if name not in _KNOWN:
        return False
    fields = (field for field in raw if field in form.fields and field not in _TOOLS)
    own = [text for field in fields for text in _texts(raw[field])]
    if not isinstance(raw[name], str):
        repeated = set(_texts(raw[name]))
        return bool(repeated) and repeated <= set(own)
    text = raw[name].strip()
    return any(text in one for one in own) or (0 < len(own) <= _FEW and all(one in text for one in own))


def _texts(value: Any) -> Iterator[str]:
    """What a value says: itself, or the contents of its messages."""
    if isinstance(value, str):
        yield from filter(None, (value.strip(),))
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, dict):
        for field in ("content", "value", "text"):
            yield from _texts(value.get(field))


def _refuse_other_aims(raw: Mapping[str, Any]) -> None:
    for name in raw:
        if name in _REFUSED and not is_empty(raw[name]):
            raise ValueError(f"holds {name}, which {_REFUSED[name]}")


def _format(raw: Mapping[str, Any]) -> Format:
    marked = [name for name in raw if name in _BY_MARK]
    told = [name for name in marked if not is_empty(raw[name])] or marked
    found = {_BY_MARK[name].name for name in told}
    if not found:
        raise ValueError(_NEEDS + _renamed(_renaming(raw)))
    return next(form for form in FORMATS if form.name in found)


def _refuse_meaningful(raw: Mapping[str, Any], others: Sequence[str], form: Format) -> None:
    """Refuse a field that means something in another format.

    It means the same here, too, and would be lost.
    """
    renaming = [
        (name, form.elsewhere[name])
        for name in others
        if name in form.elsewhere and is_empty(raw.get(form.elsewhere[name]))
    ]
    if renaming:
        missing = " and ".join(ours for _, ours in renaming)
        raise ValueError(f"has no {missing}{_renamed(renaming)} in all rows")
    if both := next((_BY_MARK[name] for name in others if name in _BY_MARK), None):
        first, second = (" or ".join(one.marks) for one in (form, both))
        raise ValueError(f"has both {first} and {second}; keep one of them in all rows")
    if lost := next((name for name in others if name in _KNOWN), None):
        raise ValueError(
            f"has {lost}, which is not read beside {' and '.join(form.marks)}: write the rows with messages,"
            " or remove the field from all of them"
        )


def _renaming(raw: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The renaming of a row without any mark; none of its content may be lost."""
    named = [name for name in _ASKED if name in raw]
    answered = [name for name in _ANSWERED if name in raw][:1]
    prompted = not is_empty(raw.get("system_prompt"))
    ours = ("instruction", "input", "output") if len(named) > 1 or prompted else ("prompt", "completion")
    system = [("system_prompt", "system")] if prompted else []
    pairs = [*system, *zip(named, ours[:-1], strict=False), *((name, ours[-1]) for name in answered)]
    return [(theirs, wanted) for theirs, wanted in pairs if theirs != wanted]


def _renamed(pairs: Sequence[tuple[str, str]]) -> str:
    """E.g. `; rename question to prompt, answer to completion`."""
    return f"; rename {', '.join(f'{theirs} to {ours}' for theirs, ours in pairs)}" if pairs else ""
