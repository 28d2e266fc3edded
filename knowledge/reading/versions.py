"""The part of an earlier reading that still holds when some files have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from knowledge.reading.types import COMMAND_FILE, FieldValue


@cache
def reader_version() -> str:
    """A digest of the reader itself: other rules invalidate every stored reading."""
    digest = hashlib.sha256()
    for file in sorted(one for one in Path(__file__).parent.rglob("*.*") if one.suffix in {".py", ".toml"}):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def file_digests(files: Mapping[str, str], command: str | None) -> dict[str, str]:
    """The digest of each file's text, and of the command as that of a file."""
    texts = {**files, COMMAND_FILE: command or ""}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def tree_digest(digests: Mapping[str, str]) -> str:
    """Changes when a file or the command does."""
    lines = "\n".join(f"{name}\0{digest}" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def equal_files(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    """How many files of two trees have the same name and text."""
    return len(one.items() & other.items())


def carried(
    values: Mapping[str, FieldValue], before: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, FieldValue]:
    """The values all of whose evidence stands in files that have not changed."""
    unchanged = {name for name, digest in now.items() if before.get(name) == digest}
    return {
        name: value
        for name, value in values.items()
        if value.evidence and {place.file for place in value.evidence} <= unchanged
    }
