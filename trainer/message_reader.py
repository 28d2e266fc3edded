"""Typed access to the messages between node and portal. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from trainer.protocol import ProtocolError, TooMany
from trainer.strict_json import UNSTORABLE, is_number, is_whole

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
MAX_ENTRIES = 1024  # texts that a node says of itself in one table
LARGEST = 1e18  # of any number: a larger one is no measurement, and no column keeps it


def storable(text: str) -> str:
    """Return the text with a mark in place of what no database keeps.

    That is NUL and lone surrogates.
    """
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


class Reader:
    """Typed access to a mapping that names the path of what is wrong."""

    def __init__(self, raw: Any, path: str) -> None:
        if not isinstance(raw, Mapping):
            raise ProtocolError(path, "must be an object")
        self.raw, self.path = raw, path

    def _get(self, name: str, default: Any) -> Any:
        value = self.raw.get(name)
        if value is None and default is ...:
            raise ProtocolError(f"{self.path}.{name}", "is missing")
        return default if value is None else value

    def text(self, name: str, default: Any = ..., limit: int = 4000) -> str:
        value = self._get(name, default)
        if not isinstance(value, str) or len(value) > limit or UNSTORABLE.search(value):
            raise ProtocolError(f"{self.path}.{name}", f"must be a text of at most {limit} characters")
        return value

    def ident(self, name: str) -> str:
        value = self.text(name)
        if not _ID.match(value):
            raise ProtocolError(f"{self.path}.{name}", "must be an id")
        return value

    def whole(self, name: str, default: Any = ..., low: int = 0, high: int = 2**53) -> int:
        value = self._get(name, default)
        if not is_whole(value) or not low <= value <= high:
            raise ProtocolError(f"{self.path}.{name}", f"must be a whole number from {low} to {high}")
        return value

    def number(self, name: str, default: Any = ..., low: float = 0.0) -> float:
        value = self._get(name, default)
        if not is_number(value) or not low <= value <= LARGEST:
            raise ProtocolError(f"{self.path}.{name}", f"must be a number from {low:g} to {LARGEST:g}")
        return float(value)

    def items(self, name: str, limit: int) -> list[Reader]:
        value = self._get(name, [])
        if not isinstance(value, list | tuple):
            raise ProtocolError(f"{self.path}.{name}", "must be a list")
        if len(value) > limit:
            raise TooMany(f"{self.path}.{name}", f"must be a list of at most {limit}; send the rest later")
        return [Reader(entry, f"{self.path}.{name}[{index}]") for index, entry in enumerate(value)]

    def names(self, name: str, limit: int, longest: int) -> list[str]:
        """A list of texts."""
        value = self._get(name, [])
        if not isinstance(value, list | tuple) or len(value) > limit:
            raise ProtocolError(f"{self.path}.{name}", f"must be a list of at most {limit}")
        if not all(isinstance(v, str) and len(v) <= longest and not UNSTORABLE.search(v) for v in value):
            raise ProtocolError(f"{self.path}.{name}", f"must hold texts of at most {longest} characters")
        return list(value)

    def table(self, name: str) -> dict[str, Any]:
        value = self._get(name, {})
        if not isinstance(value, Mapping):
            raise ProtocolError(f"{self.path}.{name}", "must be an object")
        return dict(value)

    def texts(self, name: str, limit: int) -> dict[str, str]:
        """Return a table of texts, cut rather than refused.

        A node says them of itself beside the contract.
        """
        entries = islice(self.table(name).items(), MAX_ENTRIES)
        return {storable(str(k))[:50]: storable(str(v))[:limit] for k, v in entries}
