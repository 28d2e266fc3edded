"""Which file of a tree a path means, and places in files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from knowledge.reading.syntax.expressions import Known
from knowledge.reading.syntax.makefiles import MAKEFILES
from knowledge.reading.types import Location, Statement

_MODULE = re.compile(r"\w+(?:\.\w+)+(?<!\.py)")


class FileNames:
    """The paths of a tree, by which file a script means."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: set[str] = set()
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        if path not in self._paths:
            self._paths.add(path)
            self._by_name.setdefault(PurePosixPath(path).name, []).append(path)

    def find(self, path: str, near: str) -> str | None:
        """Find the file of the tree that a path means.

        It is looked for from where it is named, from the root, or by its end.
        """
        path = path.strip().replace("\\", "/").removeprefix("./").removeprefix("file://")
        if not path or len(path) > 300 or path.endswith("/"):
            return None
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(near), path))
        for name in (path, beside):
            if name in self._paths:
                return name
        bare = re.sub(r"^(\$\w+|\$\{\w+\}|/|\.\./)+/?", "", path).lstrip("/")
        same = self._by_name.get(PurePosixPath(bare).name, [])
        tail = [name for name in same if name.endswith("/" + bare)]
        if len(tail) == 1:
            return tail[0]
        return same[0] if len(same) == 1 and "." in bare else None


def meant_by(target: str) -> Sequence[str]:
    """The paths that a command may start: a script, a module, make's rules."""
    if target == "make":
        return MAKEFILES
    module = target.replace(".", "/") + ".py" if _MODULE.fullmatch(target) else ""
    return [target, module] if module else [target]


def place_in(file: str, known: Known) -> Location:
    return location(known.file or file, known.line, known.end_line)


def location(file: str, line: int, end_line: int) -> Location:
    return Location(file, line, end_line if end_line > line else None)


def moved(one: Statement, place: Location) -> Statement:
    return replace(one, place=place)
