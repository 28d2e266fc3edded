"""The code of a notebook.

Each of its lines comes with the line of the file on which it stands.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

MAGIC = re.compile(r"\s*[%!?]|.*\?\s*$")
MOST_LOOKED_AT = (
    100_000_000  # characters, before lines are told no more: as often as 50 times the largest one
)
SHELL_CELL = re.compile(r"%%(bash|sh|script bash)\b")


class NotANotebook(ValueError):
    """The file is no notebook."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """Python of all code cells as one text, and shell commands apart.

    `lines[n]`: the line of the file on which line n + 1 of the text stands.
    """

    python: str
    lines: tuple[int, ...]
    shell: str
    shell_lines: tuple[int, ...]


def parse(text: str) -> Notebook:
    """Read a notebook's code; what its cells printed is no evidence.

    Raises NotANotebook.
    """
    try:
        cells = json.loads(text)["cells"]
        found = [cell for cell in cells if isinstance(cell, dict)]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotANotebook("It is no notebook in JSON.") from error
    finder = _Finder(text)
    python: list[tuple[str, int]] = []
    shell: list[tuple[str, int]] = []
    for cell in found:
        placed = finder.placed(cell.get("source"))
        if cell.get("cell_type") != "code" or not placed:
            continue
        if SHELL_CELL.match(placed[0][0]):
            shell += [("", placed[0][1]), *placed[1:]]
        elif not placed[0][0].startswith("%%"):
            python += _without_magic(placed, shell)
    return Notebook(
        "\n".join(line for line, _ in python),
        tuple(at for _, at in python),
        "\n".join(line for line, _ in shell),
        tuple(at for _, at in shell),
    )


def _without_magic(placed: list[tuple[str, int]], shell: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The lines of a cell; `!command` lines go to the shell."""
    kept, continued = [], False
    for line, at in placed:
        if continued or MAGIC.match(line):
            if continued or line.lstrip().startswith("!"):
                shell.append((line.lstrip().removeprefix("!"), at))
                continued = line.rstrip().endswith("\\")
            indent = line[: len(line) - len(line.lstrip())]
            kept.append((f"{indent}pass", at))
        else:
            kept.append((line, at))
    return kept


class _Finder:
    """A search for the lines of a source in the text of its file.

    Each is looked for behind the one before it.
    """

    def __init__(self, text: str) -> None:
        self.lines, self.at = text.splitlines(), 0
        self.left = MOST_LOOKED_AT

    def placed(self, source: Any) -> list[tuple[str, int]]:
        if isinstance(source, str):
            at = self._find(json.dumps(source)[:400]) or self._find(
                json.dumps(source, ensure_ascii=False)[:400]
            )
            return [(line, at or 1) for line in source.splitlines()]
        if not isinstance(source, list):
            return []
        found = []
        for line in source:
            if isinstance(line, str):
                at = self._find(json.dumps(line)) or self._find(json.dumps(line, ensure_ascii=False))
                found += [(part, at or 1) for part in line.splitlines() or [""]]
        return found

    def _find(self, written: str) -> int:
        """The next line that holds this, from 1, or 0."""
        for at in range(self.at, min(len(self.lines), self.at + 20_000)):
            self.left -= len(self.lines[at])
            if self.left < 0:
                return 0
            if written in self.lines[at]:
                self.at = at if written in self.lines[at].replace(written, "", 1) else at + 1
                return at + 1
        return 0
