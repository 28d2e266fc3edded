"""Mappings of alternatives, of which a script picks one while it runs.

`MODELS = {"small": {"lr": 2e-4, "batch": 4}, "big": {"lr": 1e-4, "batch": 1}}` states neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from knowledge.reading.syntax.expressions import Known

ALIKE = 2  # keys that alternatives share at least; `train` and `eval` may share one
Entry = tuple[tuple[str, ...], Known]


def without_variants(entries: Sequence[Entry]) -> Iterable[Entry]:
    """Leave out what differs among the members of a mapping that are alike."""
    members: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for path, _ in entries:
        if len(path) > 2:
            members.setdefault(path[:-2], {}).setdefault(path[-2], set()).add(path[-1])
    variants = {
        whole
        for whole, named in members.items()
        if len(named) > 1 and len(set.intersection(*named.values())) >= ALIKE
    }
    values: dict[tuple[tuple[str, ...], str], set[str]] = {}
    for path, known in entries:
        values.setdefault((path[:-2], path[-1]), set()).add(repr(known.value))
    return [
        (path, known)
        for path, known in entries
        if path[:-2] not in variants or len(values[path[:-2], path[-1]]) == 1
    ]
