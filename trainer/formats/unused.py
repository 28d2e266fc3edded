"""Fields of a file that nothing understands: its owner is told their names."""

from __future__ import annotations

from collections.abc import Iterable

_NAMES, _CHARACTERS = 20, 50  # a file may hold as many names as it likes


class Unused:
    """The first 20 names, in the order in which they came."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def note(self, names: Iterable[str], path: str = "") -> None:
        """Note names of fields that are not used.

        path: of the object that holds them, such as `messages[].`; empty for the row itself.
        """
        for name in names:
            if len(self._names) < _NAMES:
                self._names[path + "".join(c for c in name[:_CHARACTERS] if c.isprintable())] = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)
