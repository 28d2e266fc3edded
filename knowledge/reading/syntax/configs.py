"""YAML, JSON (with comments) and TOML as a flat list of entries.

Entries have their lines. Nothing is constructed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import PurePosixPath
from typing import Any

import yaml
from yaml.composer import Composer

KINDS = frozenset({".yaml", ".yml", ".json", ".jsonc", ".toml"})
MOST_LINES = 4_000  # what is longer is data
MOST_ENTRIES = 20_000
MOST_NODES = 60_000  # aliases let a short file stand for very many
DEEPEST = 30
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
REFERENCE = re.compile(r"\$\{([\w.]+)\}")


class _Loader(Composer, yaml.CSafeLoader):
    """Nodes put together in Python of what is parsed in C.

    The composer in C falls over deep files, and the parser in Python takes seconds for a long one.
    """

    def __init__(self, stream: str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)


class Unreadable(ValueError):
    """The file cannot be parsed; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value under the path of its keys; `value` is a scalar or a list of scalars."""

    path: tuple[str, ...]
    value: Any
    line: int
    end_line: int


def is_config(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in KINDS


def entries(name: str, text: str) -> list[Entry]:
    """All scalars, and lists of scalars, of a configuration file. Raises Unreadable."""
    if text.count("\n") > MOST_LINES:
        raise Unreadable(f"It has more than {MOST_LINES:,} lines, too many for a configuration.")
    suffix = PurePosixPath(name).suffix.lower()
    found = _toml(text) if suffix == ".toml" else _yaml(text, json=suffix.startswith(".json"))
    scalars = {".".join(entry.path): entry.value for entry in found if not isinstance(entry.value, list)}
    return [_resolved(entry, scalars) for entry in found]


def _resolved(entry: Entry, scalars: dict[str, Any]) -> Entry:
    """OmegaConf's `${other.key}` is that key's value."""
    if not isinstance(entry.value, str) or "${" not in entry.value:
        return entry
    value = REFERENCE.sub(lambda found: str(scalars.get(found[1], found[0])), entry.value)
    return Entry(entry.path, None if "${" in value else value, entry.line, entry.end_line)


def _yaml(text: str, *, json: bool) -> list[Entry]:
    if json:
        text = COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
        text = re.sub(r",(\s*[}\]])", r"\1", text)
    try:
        nodes = list(yaml.compose_all(text.replace("\t", " "), Loader=_Loader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise Unreadable(f"It cannot be parsed{f' at line {mark.line + 1}' if mark else ''}.") from error
    budget = count(MOST_NODES, -1)
    walked = (
        entry
        for node in nodes
        for key, value in (_unmerged(node) if isinstance(node, yaml.MappingNode) else [(None, node)])
        for entry in _walk(value, () if key is None else (key,), 0, budget)
    )
    return list(islice(walked, MOST_ENTRIES))


def _unmerged(root: Any) -> list[tuple[str, Any]]:
    """Return the top of a file without the mappings that others merge.

    These stand there only to be merged.
    """
    pairs = _pairs(root, 0)
    merged = {
        id(one)
        for _, value in pairs
        if isinstance(value, yaml.MappingNode)
        for key, part in value.value
        if key.tag == "tag:yaml.org,2002:merge"
        for one in (part.value if isinstance(part, yaml.SequenceNode) else [part])
    }
    return [(key, value) for key, value in pairs if id(value) not in merged]


def _walk(node: Any, path: tuple[str, ...], depth: int, budget: Iterator[int]) -> Iterator[Entry]:
    if next(budget) <= 0:
        raise Unreadable("Its aliases make it too large.")
    if depth > DEEPEST or node is None:
        return
    if isinstance(node, yaml.ScalarNode):
        yield Entry(path, _scalar(node), node.start_mark.line + 1, node.start_mark.line + 1)
    elif isinstance(node, yaml.MappingNode):
        for key, value in _pairs(node, depth):
            yield from _walk(value, (*path, key), depth + 1, budget)
    elif isinstance(node, yaml.SequenceNode):
        yield from _sequence(node, path, depth, budget)


def _pairs(node: Any, depth: int) -> list[tuple[str, Any]]:
    """A mapping's own keys, and those that it merges in and does not state itself."""
    own: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.tag == "tag:yaml.org,2002:merge" and depth < DEEPEST:
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(one, yaml.MappingNode):
                    merged |= {name: item for name, item in _pairs(one, depth + 1) if name not in merged}
        else:
            own[key.value] = value
    return [*own.items(), *((name, item) for name, item in merged.items() if name not in own)]


def _sequence(node: Any, path: tuple[str, ...], depth: int, budget: Iterator[int]) -> Iterator[Entry]:
    items = node.value[:200]
    if items and all(isinstance(item, yaml.ScalarNode) for item in items):
        first, last = items[0].start_mark.line + 1, items[-1].end_mark.line + 1
        yield Entry(path, [_scalar(item) for item in items], min(first, node.start_mark.line + 1), last)
    else:
        for at, item in enumerate(items):
            yield from _walk(item, (*path, f"[{at}]"), depth + 1, budget)


def _scalar(node: Any) -> Any:
    """Booleans and nulls as such; numbers and texts as they are written."""
    if node.tag.endswith(":null"):
        return None
    if node.tag.endswith(":bool"):
        return str(node.value).lower() in {"true", "yes", "on"}
    if node.tag.endswith(":int") and re.fullmatch(r"[1-9][0-9_]*", node.value):
        return int(node.value.replace("_", ""))
    return node.value


def _toml(text: str) -> list[Entry]:
    try:
        parsed = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable(f"It cannot be parsed: {error}.") from error
    lines = _toml_lines(text)
    return [
        Entry(path, value, lines.get(path, 1), lines.get(path, 1)) for path, value in _flat(parsed, (), 0)
    ][:MOST_ENTRIES]


def _flat(value: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, (*path, key), depth + 1)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for at, item in enumerate(value[:200]):
            yield from _flat(item, (*path, f"[{at}]"), depth + 1)
    else:
        yield path, value


def _toml_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each `key = value` below its table's header."""
    table: tuple[str, ...] = ()
    seen: dict[str, int] = {}
    found: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = re.fullmatch(r"\s*\[(\[?)([^\[\]]+)\]\]?\s*(#.*)?", line)
        if header:
            table = tuple(part.strip(" \"'") for part in header[2].split("."))
            if header[1]:
                at = seen[header[2]] = seen.get(header[2], -1) + 1
                table = (*table, f"[{at}]")
        elif setting := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            key = tuple(part.strip(" \"'") for part in setting[1].split("."))
            found.setdefault((*table, *key), number)
    return found
