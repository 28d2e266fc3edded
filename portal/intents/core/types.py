"""The values of a sentence, and the setting in which it was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from knowledge.core.domain.catalogue import Catalogue

MAX_CHARACTERS = 1_000
MAX_TOKENS = 200
STATED, INFERRED = "stated", "inferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """Registered nodes of one kind; `gpus` is of one node."""

    gpu_model: str
    gpus: int = 1
    nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """All context of a sentence.

    `files` are the names that the person sees, newest first; `ran_models` what ran here, newest first.
    """

    now: datetime
    zone: tzinfo
    catalogue: Catalogue
    files: Sequence[str] = ()
    nodes: Sequence[NodeKind] = ()
    newest_job_file: str | None = None
    teams: Sequence[str] = ()
    currency: str = "EUR"
    ran_models: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One reader's proposal of a value for a field.

    It stands somewhere in the normalised text. An empty field only uses the words up. `choices` stand in
    place of a value that several could be; `weight` comes on top of the span's length where proposals
    compete. A `weak` proposal holds only where the field has no other.
    """

    field: str
    start: int
    end: int
    value: Any = None
    origin: str = STATED
    note: str = ""
    complaint: str = ""
    choices: tuple[Any, ...] = ()
    weight: int = 0
    weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledField:
    """A value of the form, and where it comes from.

    The characters of the sentence say so.
    """

    value: Any
    origin: str
    words: tuple[int, int] | None = None
    note: str = ""

    def because(self, text: str) -> str:
        """The words of the sentence that say so, or the reason of what was inferred."""
        said = f"“{text[slice(*self.words)]}”" if self.words else ""
        if self.origin == INFERRED:
            return self.note or said
        return f"{said}; {self.note}" if self.note else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One answer to a question: a value of a field, as it is shown."""

    field: str
    value: Any
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The one thing that is asked; without choices, any value of the field answers."""

    field: str
    text: str
    choices: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentReading:
    """The reading of a sentence.

    It has fields, at most one question, words not understood, complaints and notes.
    """

    fields: Mapping[str, FilledField] = field(default_factory=dict)
    question: Question | None = None
    unknown: tuple[tuple[int, int], ...] = ()
    complaints: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
