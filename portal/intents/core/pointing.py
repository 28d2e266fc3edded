"""Words of a sentence that somebody else points at, such as a language model.

The pointer says which field the words are about and what they mean. The readers look at these words alone;
the value holds only if they find the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.intents.core.names.file_index import FileIndex
from portal.intents.core.reading import read
from portal.intents.core.spans import Sentence, text_of
from portal.intents.core.types import INFERRED, FilledField, Proposal, Setting

NOTE = "by the language model"
LONGEST_WORDS = 120
# Sentences about one field alone; the readers find the value in the first that tells them one.
FRAMES: dict[str, tuple[str, ...]] = {
    "model": ("model {}", "{}"),
    "training_file": ("on {}",),
    "validation_file": ("validate on {}",),
    "deadline_at": ("by {}", "{}"),
    "budget": ("budget {}", "{}"),
    "goal": ("{}",),
    "team": ("for the {} team", "{}"),
    "tuning": ("with {}",),
    "precision": ("with {}",),
    "sharding": ("with {}",),
    "gpu_model": ("on {}", "on 1 {}"),
    "number_gpus": ("on {} gpus", "{}"),
    "number_nodes": ("on {} nodes", "{}"),
    "epochs": ("{} epochs", "{}"),
    "max_steps": ("{} steps", "{}"),
    "learning_rate": ("learning rate {}", "{}"),
    "effective_batch_size": ("batch size {}", "{}"),
    "per_device_batch_size": ("batch size {} per gpu", "{}"),
    "tokens_per_sample": ("context {}", "{}"),
    "lora_r": ("rank {}", "{}"),
    "lora_alpha": ("alpha {}", "{}"),
}
COUNTED = frozenset(
    ("number_gpus", "number_nodes", "epochs", "max_steps", "effective_batch_size", "per_device_batch_size",
     "tokens_per_sample", "lora_r", "lora_alpha")
)  # fmt: skip
_NUMBER = re.compile(r"(?i)\d[\d.,]*k?|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve)\b")


@dataclass(frozen=True, slots=True)
class Pointer:
    """A field, the value that it is said to have, and the words that mean it."""

    field: str
    value: Any
    words: str


def proposals_of(
    pointers: Iterable[Pointer], typed: str, setting: Setting, files_of: FileIndex
) -> Iterator[Proposal]:
    """Yield proposals of the pointers that hold.

    Their words stand in the text, and mean the value to the readers as well.
    """
    text = text_of(typed)
    for pointer in pointers:
        words = text_of(pointer.words).low.strip()
        start = _place(text, words)
        if start is None or pointer.field not in FRAMES:
            continue
        found = _derived(pointer.field, words, setting, files_of)
        if found is not None and _same(found.value, pointer.value):
            note = f"{NOTE}; {found.note}" if found.note else NOTE
            yield Proposal(
                field=pointer.field,
                start=start,
                end=start + len(words),
                value=found.value,
                origin=INFERRED,
                note=note,
            )


def _place(text: Sentence, words: str) -> int | None:
    if not words or len(words) > LONGEST_WORDS:
        return None
    found = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text.low)
    return found.start() if found else None


def _derived(field: str, words: str, setting: Setting, files_of: FileIndex) -> FilledField | None:
    numbers = [found.group() for found in _NUMBER.finditer(words)] if field in COUNTED else []
    for said in (words, *numbers[:1]) if len(numbers) == 1 else (words,):
        for frame in FRAMES[field]:
            if found := read(frame.format(said), setting, files_of).fields.get(field):
                return found
    return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, datetime):
        try:
            return one == datetime.fromisoformat(str(other))
        except (TypeError, ValueError):
            return False
    if isinstance(one, int | float) and isinstance(other, int | float):
        return not isinstance(other, bool) and abs(one - other) <= 1e-9 * abs(one)
    return isinstance(other, str) and str(one).casefold() == other.strip().casefold()
