"""Names of entries: which spellings are equal, and which are near."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar


class CatalogueEntry(Protocol):
    """An entry of the catalogue."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=CatalogueEntry)


class UnknownName(ValueError):
    """A name the catalogue does not have; `suggestions` are the nearest ones."""

    kind = "name"

    def __init__(self, name: str, suggestions: tuple[str, ...] = ()) -> None:
        self.name, self.suggestions = name, suggestions
        hint = f" Did you mean {' or '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"The {self.kind} {name!r} is not in the catalogue.{hint}")


class UnknownModel(UnknownName):
    kind = "model"


class UnknownGpu(UnknownName):
    kind = "GPU"


def even(name: str) -> str:
    """The name in small letters, with one hyphen for each gap."""
    return re.sub(r"[ _-]+", "-", name.strip().lower())


def lookup(table: Mapping[str, Entry], name: str) -> Entry | None:
    """Return the entry of exactly this name, or else of an equal spelling."""
    return table.get(name) or table.get(even(name))


def suggest(table: Mapping[str, CatalogueEntry], name: str) -> tuple[str, ...]:
    """Suggest names that hold the given one, then those that look like it.

    The shortest of the former come first.
    """
    holding = sorted((known for known in table if name.lower() in known.lower()), key=len)
    found = [*holding, *difflib.get_close_matches(name, table, n=3, cutoff=0.6)]
    return tuple(dict.fromkeys(table[known].name for known in found))[:3]


def indexed(entries: Iterable[tuple[Entry, Sequence[str]]]) -> dict[str, Entry]:
    """Names to entries; keys and exact aliases win over evened-out spellings."""
    table = {name: entry for entry, names in entries for name in names if name}
    for name, entry in list(table.items()):
        table.setdefault(even(name), entry)
    return table
