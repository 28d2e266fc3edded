"""What the keys of other trainers ask for.

There is one table for each tool, `tools/NAME.toml`, of names alone.

version, source   of the documentation that the names come from
programs          programs and modules that start the tool
marks             keys that no other tool has
includes          tables of libraries whose keys the tool takes as well
sections          keys that merely group others
harmless          keys that do not change what is learnt, or that the portal does in its own way
[on], [off]       what is asked for where one of the keys is on, or off
[by_value.KEY]    what a value asks for; `*` stands for all others, `{}` for the value itself
[commands]        what a subcommand or a recipe's name asks for
[defaults]        values of keys that this portal's trainer has as well
[calls]           what a call in a Python script asks for, by an expression
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from knowledge.reading.rules.aliases import ALIASES
from knowledge.reading.rules.special_keys import BELOW, SPECIAL
from knowledge.reading.values import number

TABLES = Path(__file__).with_name("tools")
_OFF = frozenset({"", "none", "null", "~", "false", "no", "off", "[]", "{}"})
_NOT_TRAINING = re.compile(r"(^|_)(val|valid|validation|test|eval|evaluation|generation)(_|$)")
SEVERAL_TOOLS = 3
_REST = "*"  # all other values


@dataclass(frozen=True, slots=True)
class StatedKey:
    """A key under its parents, with its value, as a tree or a command states it."""

    path: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """The keys of a tool by what they ask for; see the module's docstring."""

    name: str
    version: str
    programs: tuple[str, ...]
    marks: frozenset[str]
    on: Mapping[str, str]
    off: Mapping[str, str]
    by_value: Mapping[str, Mapping[str, str]]
    commands: Mapping[str, str]
    defaults: Mapping[str, float]
    calls: Mapping[str, str]
    sections: frozenset[str]
    harmless: frozenset[str] = field(repr=False)

    def asked(self, key: StatedKey) -> Iterator[str]:
        """What the key asks for that this portal's trainer cannot do, by name."""
        path = plain_path(key.path)
        if not path or any(_NOT_TRAINING.search(part) for part in path[:-1]):
            return
        for parent in path[:-1]:
            if parent in self.on:
                yield self.on[parent]
        last = path[-1]
        if last in self.off and str(key.value).lower() in {"false", "no", "off", "0"}:
            yield self.off[last]
        if not _is_on(key.value):
            return
        if last in self.on and number(key.value) != self.defaults.get(last, object()):
            yield self.on[last]
        for named in (last, ".".join(path[-2:])):
            if values := self.by_value.get(named):
                yield from _of_values(values, key.value)

    def has(self, path: tuple[str, ...]) -> bool:
        """Is a key, or a mapping that it stands in, in the table?"""
        *parents, last = plain_path(path) or ("",)
        return self._has(last) or last in self.sections or any(map(self._has, parents))

    def knows(self, path: tuple[str, ...]) -> bool:
        """Is a key in the table, or read by its name?"""
        last = (plain_path(path) or ("",))[-1]
        is_read = last in ALIASES or last in SPECIAL or last in BELOW
        return not last or last.startswith("_") or is_read or self.has(path)

    def _has(self, key: str) -> bool:
        return key in self.on or key in self.off or key in self.by_value or key in self.harmless

    def starts(self, words: Sequence[str]) -> bool:
        """Is the tool started by one of these words of a command?"""
        names = [word.replace("\\", "/").rpartition("/")[2] for word in words]
        return any(name == one or name.startswith(f"{one}.") for name in names for one in self.programs)

    def commanded(self, words: Sequence[str]) -> Iterator[str]:
        """What subcommands and recipes ask for."""
        for word in words:
            if word.endswith(".py"):
                continue  # a script says itself what it does
            even = word.lower().replace("-", "_")
            for command, name in self.commands.items():
                if re.search(rf"(^|[_/:]){re.escape(command.replace('-', '_'))}($|[_/:.])", even):
                    yield name


def plain_path(path: Sequence[str]) -> tuple[str, ...]:
    """Keys in one spelling, without places in lists."""
    keys = (part.lower().replace("-", "_") for one in path for part in one.split("."))
    return tuple(key for key in keys if key and not key.startswith("["))


@cache
def tool_tables() -> Mapping[str, ToolTable]:
    """All tables by name."""
    raw = {
        file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in sorted(TABLES.glob("*.toml"))
    }
    return {name: _table(name, raw) for name in raw}


@cache
def any_tool() -> ToolTable:
    """Keys that ask for the same in each tool that has them.

    They serve a tree whose tool is not known.

    Their names are of several words, or several tools have them: other single words mean too many things.
    """
    tables = tool_tables().values()
    harmless = frozenset(key for table in tables for key in table.harmless)
    names: dict[str, list[str]] = {}
    for table in tables:
        for key, name in (*table.on.items(), *table.off.items()):
            names.setdefault(key, []).append(name)
    alike = {
        key
        for key, found in names.items()
        if len(set(found)) == 1 and ("_" in key or len(found) >= SEVERAL_TOOLS)
    } - harmless
    return ToolTable(
        name="",
        version="",
        programs=(),
        marks=frozenset(),
        on={key: name for table in tables for key, name in table.on.items() if key in alike},
        off={key: name for table in tables for key, name in table.off.items() if key in alike},
        by_value={},
        commands={},
        defaults={key: value for table in tables for key, value in table.defaults.items()},
        calls={},
        sections=frozenset(),
        harmless=harmless,
    )


def _table(name: str, raw: Mapping[str, Mapping[str, Any]]) -> ToolTable:
    own = raw[name]
    parts = [raw[one] for one in own.get("includes", ())] + [own]  # its own keys come last, and win
    return ToolTable(
        name=name,
        version=own["version"],
        programs=tuple(own.get("programs", ())),
        marks=frozenset(own.get("marks", ())),
        on=_by_key(parts, "on"),
        off=_by_key(parts, "off"),
        by_value={key: _even(values) for key, values in _merged(parts, "by_value").items()},
        commands=own.get("commands", {}),
        defaults=_merged(parts, "defaults"),
        calls=own.get("calls", {}),
        sections=frozenset(word for part in parts for word in part.get("sections", "").split()),
        harmless=frozenset(word for part in parts for word in part["harmless"].split()),
    )


def _by_key(parts: Sequence[Mapping[str, Any]], group: str) -> dict[str, str]:
    return {key: name for part in parts for name, keys in part.get(group, {}).items() for key in keys.split()}


def _merged(parts: Sequence[Mapping[str, Any]], group: str) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.get(group, {}).items()}


def _even(values: Mapping[str, str]) -> dict[str, str]:
    return {value.replace("-", "_"): name for value, name in values.items()}


def _of_values(values: Mapping[str, str], stated: Any) -> Iterator[str]:
    """Names of what the values ask for.

    A component or a kind with a colon counts by its part, too.
    """
    for one in stated if isinstance(stated, list) else [stated]:
        text = str(one).strip().lower().replace("-", "_")
        forms = (text, text.rpartition(".")[2], text.partition(":")[0], _REST)
        name = next((values[form] for form in forms if form in values), "")
        if name and text not in _OFF:
            yield name.format(text[:40])


def _is_on(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value)
    return value is not None and str(value).strip().lower() not in _OFF and number(value) != 0
