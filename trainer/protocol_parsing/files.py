"""Parsing of a file's name, digest and size."""

from __future__ import annotations

import re
from typing import Any

from trainer.message_reader import Reader
from trainer.protocol import File, ProtocolError

_HEX64 = re.compile(r"[0-9a-f]{64}\Z")


def parse_file(raw: Any, path: str = "file") -> File:
    """A `File`; its path may not leave the folder it is relative to."""
    reader = raw if isinstance(raw, Reader) else Reader(raw, path)
    name, digest = reader.text("path", limit=300), reader.text("sha256")
    if not safe_path(name):
        raise ProtocolError(f"{reader.path}.path", "must be a relative path without ..")
    if not _HEX64.match(digest):
        raise ProtocolError(f"{reader.path}.sha256", "must be 64 hexadecimal digits")
    return File(path=name, sha256=digest, bytes=reader.whole("bytes"))


def safe_path(name: str) -> bool:
    """Is this a plain relative path?

    It has no absolute, empty, hidden or parent parts, and no control characters.
    """
    parts = name.split("/")
    return bool(name) and all(re.match(r"[A-Za-z0-9_][A-Za-z0-9._+=-]*\Z", part) for part in parts)
