"""Values that were read for a job, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler.models import ReadSource

VERSION = 1
ORIGINS = STATED, INFERRED, DERIVED = "stated", "inferred", "derived"
FORMS_RESOLUTION = timedelta(minutes=1)  # a form shows moments to the minute


class ReadValueChoice(StrEnum):
    """A person's choice about a value that was read."""

    KEPT = "kept"
    CHANGED = "changed"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadValue:
    """A value for a field of a submission, and the words or line that it comes from.

    value: as JSON has it; files by id, teams by name, moments in ISO. origin: stated, inferred or derived.
    """

    value: Any
    origin: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadValues:
    """Values from one source, by the names of a submission; parameters by their own."""

    source: ReadSource
    values: Mapping[str, ReadValue] = field(default_factory=dict)
    said: str = ""

    def only(self, names: Iterable[str]) -> ReadValues:
        """The values that filled something."""
        wanted = set(names)
        filled = {name: one for name, one in self.values.items() if name in wanted}
        return ReadValues(source=self.source, values=filled, said=self.said)

    def fates(self, submitted: Mapping[str, Any]) -> dict[str, ReadValueChoice]:
        """Return what became of each value in what was submitted."""
        return {name: choice_of(one.value, submitted.get(name)) for name, one in self.values.items()}

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source.value,
            "values": {name: asdict(one) for name, one in self.values.items()},
            "said": self.said,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ReadValues:
        values = {name: ReadValue(**one) for name, one in found["values"].items()}
        return cls(source=ReadSource(found["source"]), values=values, said=found["said"])


def choice_of(read: Any, submitted: Any) -> ReadValueChoice:
    """Compare a value as read with the submitted one.

    None and the empty text are no value. Moments are equal within a form's minute.
    """
    if submitted is None or submitted == "":
        return ReadValueChoice.CLEARED
    if isinstance(submitted, datetime):
        is_same = abs(datetime.fromisoformat(read) - submitted) < FORMS_RESOLUTION
    else:
        is_same = read == submitted
    return ReadValueChoice.KEPT if is_same else ReadValueChoice.CHANGED
