"""Does the line that a model names hold the value that it gives?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from knowledge.reading.rules.aliases import ALIASES
from knowledge.reading.values import CLEAN

EVIDENT = (
    ".py",
    ".sh",
    ".slurm",
    ".sbatch",
    ".yaml",
    ".yml",
    ".json",
    ".jsonc",
    ".toml",
    ".cfg",
    ".ini",
    ".ipynb",
    "",
)
_TOKEN = re.compile(r"[\w./+-]+")
_NAME = re.compile(r"[A-Za-z_](?:[\w.]|-(?=\w))*")
SHORTEST_SHARED = 3
BETWEEN = " \t\"'=:,([{"


def holds(files: Mapping[str, str], file: str, line: int, field: str, value: Any) -> bool:
    """Whether a line of code states a value of a field.

    Comments and prose are no evidence. Where a line names the field, the value has to follow the name; a line
    that is known to speak of other fields alone states nothing of this one.
    """
    text = _stated(files, file, line)
    fields = [(_field(found.group()), text[found.end() :]) for found in _NAME.finditer(text)]
    behind = [rest for name, rest in fields if name == field]
    if behind:
        return any(_begins_with(rest.lstrip(BETWEEN), field, value) for rest in behind)
    if any(name for name, _ in fields) and not _shares_a_word(field, text):
        return False
    return not isinstance(value, bool) and _has(text, field, value)


def _stated(files: Mapping[str, str], file: str, line: int) -> str:
    if file not in files or PurePosixPath(file).suffix.lower() not in EVIDENT:
        return ""
    lines = files[file].splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return re.sub(r"(^|\s)(#|//)(?!SBATCH).*", "", text).strip()


def _field(name: str) -> str | None:
    bare = name.lower().replace("-", "_").rpartition(".")[2]
    return ALIASES[bare][0] if bare in ALIASES else None


def _shares_a_word(field: str, text: str) -> bool:
    words = [word for word in field.split("_") if len(word) >= SHORTEST_SHARED]
    return any(word in text.lower() for word in words)


def _begins_with(rest: str, field: str, value: Any) -> bool:
    if isinstance(value, list):
        return all(str(one).lower() in rest.lower() for one in value)
    first = _TOKEN.match(rest)
    if value is True and (first is None or rest.startswith("-")):
        return True  # a switch that is named alone
    return first is not None and _has(first.group(), field, value)


def _has(text: str, field: str, value: Any) -> bool:
    tokens = [token.strip(".") for token in _TOKEN.findall(text)]
    if isinstance(value, list):
        return all(str(one).lower() in text.lower() for one in value)
    if isinstance(value, str):
        return value.lower() in text.lower() or any(CLEAN[field](token) == value for token in tokens)
    return any(_equal(CLEAN[field](token), value) for token in tokens)


def _equal(one: Any, value: Any) -> bool:
    if isinstance(one, bool) or isinstance(value, bool):
        return one is value
    return isinstance(one, int | float) and abs(one - value) <= 1e-6 * abs(value)
