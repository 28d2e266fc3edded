"""The model's view: the files of one tree, and nothing else."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from trainer.strict_json import is_whole

MOST_LINES, MOST_ENTRIES, LONGEST_LINE = 200, 200, 400
DEEPEST = 5


def used(files: Mapping[str, str], call: Mapping[str, Any]) -> str:
    """Return the answer of a tool.

    `tree` takes path and depth, `read` path, start and lines. The answer to a wrong call is a text, too.
    """
    path = str(call.get("path") or "").strip()
    path = "" if path in (".", "/") else posixpath.normpath(path) if path else ""
    if call.get("tool") == "tree":
        return tree(files, path, _whole(call.get("depth"), 2))
    if call.get("tool") == "read":
        return read_lines(files, path, _whole(call.get("start"), 1), _whole(call.get("lines"), MOST_LINES))
    return "There are two tools: tree and read."


def tree(files: Mapping[str, str], path: str, depth: int) -> str:
    """The entries below a folder, folders with a slash."""
    root = f"{path}/" if path else ""
    depth = max(1, min(depth, DEEPEST))
    found = set()
    for name in files:
        if name.startswith(root):
            parts = name[len(root) :].split("/")
            found.add("/".join(parts[:depth]) + ("/" if len(parts) > depth else ""))
    shown = sorted(found)[:MOST_ENTRIES]
    more = [f"… {len(found) - len(shown)} more"] if len(found) > len(shown) else []
    return "\n".join([*shown, *more]) or f"There is no folder {path[:100]}."


def read_lines(files: Mapping[str, str], path: str, start: int, lines: int) -> str:
    """Lines of a file with their numbers, from 1."""
    if path not in files:
        return f"There is no file {path[:100]}."
    first = max(1, start)
    found = files[path].splitlines()[first - 1 :][: max(1, min(lines, MOST_LINES))]
    return (
        "\n".join(f"{number}: {line[:LONGEST_LINE]}" for number, line in enumerate(found, start=first))
        or "No such lines."
    )


def _whole(value: object, otherwise: int) -> int:
    return value if is_whole(value) else otherwise
