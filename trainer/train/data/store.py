"""Tokens on disk: written once on a node, mapped by all its training processes.

NAME.codes holds the codes of all rows (see Sample), NAME.rows for each row where it ends and
how many targets it has, NAME.json, which is written last, what they are. A host's memory holds
only the part that is read at the moment.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from trainer.checkpoint import write_atomically
from trainer.train.data.batches import Codes, Sample

CODES, ROWS, HEADER = ".codes", ".rows", ".json"


@dataclass(frozen=True, slots=True)
class Header:
    """The header of stored tokens.

    key: what the tokens were made from.
    digest: of the tokens.
    notes: what people should know of them.
    ends: tokens that end what the model says once it has learnt them, beyond those at which it
    stops already.
    """

    key: str
    digest: str
    notes: tuple[str, ...]
    ends: tuple[int, ...]


class Writer:
    """Writes one file's tokens. Raises OSError where the disk takes no more."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        self._stem = folder / name
        self._stem.with_suffix(HEADER).unlink(missing_ok=True)
        self._codes, self._rows = (self._stem.with_suffix(end).open("wb") for end in (CODES, ROWS))
        self.rows = self.tokens = self.barren = 0

    def add(self, batch: Sequence[Codes]) -> None:
        """The codes of the next rows."""
        for codes in batch:
            targets = int(np.count_nonzero(codes[1:] < 0))
            self.rows += 1
            self.tokens += len(codes)
            self.barren += targets == 0
            codes.tofile(self._codes)
            array("q", (self.tokens, targets)).tofile(self._rows)

    def close(self, key: str, notes: Sequence[str], ends: Sequence[int]) -> None:
        """Write the header, once all rows are there."""
        self._codes.close()
        self._rows.close()
        header = {"key": key, "digest": _digest(self._stem), "notes": list(notes), "ends": list(ends)}
        write_atomically(self._stem.with_suffix(HEADER), json.dumps(header))


class Tokens(Sequence[Sample]):
    """The rows of one file, read when they are asked for."""

    def __init__(self, folder: Path, name: str) -> None:
        stem = folder / name
        self.header = _header(stem)
        rows = np.memmap(stem.with_suffix(ROWS), dtype="<i8", mode="r").reshape(-1, 2)
        self._ends, self._targets = rows[:, 0], rows[:, 1]
        size = stem.with_suffix(CODES).stat().st_size
        self._codes = (
            np.memmap(stem.with_suffix(CODES), dtype="<i4", mode="r") if size else np.zeros(0, "<i4")
        )

    @property
    def lengths(self) -> array[int]:
        """Tokens of each row."""
        return array("i", np.diff(self._ends, prepend=0).astype("<i4").tobytes())

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        begin = int(self._ends[index - 1]) if index else 0
        return Sample(self._codes[begin : int(self._ends[index])], int(self._targets[index]))


def adopt(source: Path, folder: Path, name: str, key: str) -> bool:
    """Take over the tokens that an earlier attempt made of the same data.

    False where there are none.
    """
    stem = source / name
    try:
        header = _header(stem)
        if header.key != key or header.digest != _digest(stem):
            return False
        folder.mkdir(exist_ok=True)
        for end in (CODES, ROWS, HEADER):  # the header comes last here, too
            target = (folder / name).with_suffix(end)
            target.unlink(missing_ok=True)
            os.link(stem.with_suffix(end), target)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def _header(stem: Path) -> Header:
    raw: dict[str, Any] = json.loads(stem.with_suffix(HEADER).read_text(encoding="utf-8"))
    ends = tuple(map(int, raw["ends"]))
    return Header(str(raw["key"]), str(raw["digest"]), tuple(map(str, raw["notes"])), ends)


def _digest(stem: Path) -> str:
    """Return the SHA-256 of both files, hexadecimal.

    It is the same wherever and by however many processes they are made.
    """
    digest = hashlib.sha256()
    for end in (ROWS, CODES):
        with stem.with_suffix(end).open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
