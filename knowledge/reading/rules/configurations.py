"""The values of a configuration file, and the other files that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from knowledge.reading.rules.aliases import PLAIN
from knowledge.reading.rules.keys import ELSEWHERE, meanings
from knowledge.reading.rules.scripts import field_of, option_statements, statement
from knowledge.reading.rules.special_keys import Meaning
from knowledge.reading.syntax.configs import Entry
from knowledge.reading.types import Location, Origin, Statement

MIXERS = frozenset({"dataset_mixer", "data_mixture", "dataset_mixture"})
TUNING_PREFIXES = (("qlora_", "qlora"), ("lora_", "lora"), ("dora_", "dora"))


def configured(
    entries: Sequence[Entry], file: str, origin: Origin, links: dict[str, str]
) -> Iterator[Statement]:
    """The statements of a file; several entries of one list are one statement."""
    lists: dict[tuple[str, int], list[tuple[Any, Entry]]] = {}
    for entry in entries:
        place = Location(file, entry.line, entry.end_line if entry.end_line > entry.line else None)
        name = entry.path[-1] if entry.path else ""
        if len(entry.path) > 1 and entry.path[-2] in MIXERS:
            lists.setdefault(("dataset", PLAIN), []).append((name, entry))
            continue
        if len(entry.path) == 1 and field_of(name, links):
            yield from option_statements(name, entry.value, links, place, origin)
            continue
        for meaning in meanings(entry.path, entry.value):
            if meaning.field == "dataset" or (name.startswith("lora_") and meaning.field == "target_modules"):
                lists.setdefault((meaning.field, meaning.weight), []).append((meaning.value, entry))
            else:
                yield statement(meaning, place, origin, ".".join(entry.path))
        yield from _components(entry, place, origin)
    for (field, weight), found in lists.items():
        yield _joined(field, weight, found, file, origin)


def _joined(field: str, weight: int, found: list[tuple[Any, Entry]], file: str, origin: Origin) -> Statement:
    """One statement of all that stand in a list; apart from it, the first one counts."""
    listed = [pair for pair in found if any(key.startswith("[") for key in pair[1].path)] or found[:1]
    if field == "target_modules" or (found[0][1].path[-2:-1] and found[0][1].path[-2] in MIXERS):
        listed = found
    values: list[Any] = []
    for value, _ in listed:
        values += [one for one in (value if isinstance(value, list) else [value]) if one not in values]
    first, last = listed[0][1], listed[-1][1]
    place = Location(file, first.line, last.end_line if last.end_line > first.line else None)
    value = values if len(values) > 1 else values[0]
    return statement(Meaning(field, value, weight), place, origin, ".".join(first.path))


def _components(entry: Entry, place: Location, origin: Origin) -> Iterator[Statement]:
    """State the adapter that a builder of torchtune's names.

    The builder that its configurations name for a model may also name its adapter.
    """
    if entry.path[-2:] != ("model", "_component_") or not isinstance(entry.value, str):
        return
    builder = entry.value.rpartition(".")[2]
    for prefix, tuning in TUNING_PREFIXES:
        if builder.startswith(prefix):
            yield statement(Meaning("tuning", tuning, PLAIN), place, origin, "_component_")


def chosen_variant(entries: Sequence[Entry], strings: Collection[str]) -> list[Entry]:
    """Leave out the variants that the script does not name.

    They are variants of a configuration among its entries. Variants are mappings at the top of the file that
    share keys.
    """
    leaves: dict[str, set[str]] = {}
    for entry in entries:
        if len(entry.path) > 1:
            leaves.setdefault(entry.path[0], set()).add(entry.path[-1])
    named = {key for key in leaves if key in strings}
    others = {
        key for key in leaves if key not in named and any(len(leaves[key] & leaves[one]) > 1 for one in named)
    }
    return [entry for entry in entries if not entry.path or entry.path[0] not in others]


def named_in(entries: Sequence[Entry]) -> Iterator[str]:
    """Paths of other files that the entries may name."""
    for entry in entries:
        if any(ELSEWHERE.search(key) for key in entry.path):
            continue
        values = entry.value if isinstance(entry.value, list) else [entry.value]
        for value in values:
            if not isinstance(value, str) or len(value) > 200:
                continue
            if value.endswith((".yaml", ".yml", ".json", ".toml")):
                yield value


def hydra_groups(entries: Sequence[Entry]) -> dict[str, str]:
    """The options of Hydra's defaults list by their group."""
    found = {}
    for entry in entries:
        keys = [key for key in entry.path[1:] if not key.startswith("[")]
        if entry.path and entry.path[0] == "defaults" and keys and isinstance(entry.value, str):
            found[keys[-1].removeprefix("override ").strip("/")] = entry.value
    return found
