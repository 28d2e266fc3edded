"""How well a reader does on labelled trees.

The counts and shares are those that the labels' README defines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from knowledge.reading.rules.aliases import ALIASES
from knowledge.reading.types import FieldValue, Location, Reading, Tree
from knowledge.reading.values import CLEAN

LIBRARY_DEFAULT, SURE = 0.5, 0.85
OURS = {"method": "tuning"}  # fields that labels call otherwise
UNLABELLED = frozenset({"weight_decay", "adam_beta2", "clip_norm"})


def labelled(folder: Path) -> Iterable[tuple[dict[str, Any], Tree]]:
    """Return the labels below a folder, with their trees.

    A file that is no text is read as far as it is one.
    """
    for path in sorted(folder.glob("*/label.json")):
        label = _in_our_names(json.loads(path.read_text(encoding="utf-8")))
        files = {
            name: (path.parent / "tree" / name).read_text(encoding="utf-8", errors="replace")
            for name in label["files"]
        }
        yield label, Tree(files, label["command"])


def _in_our_names(label: dict[str, Any]) -> dict[str, Any]:
    fields = {part: {OURS.get(n, n): row for n, row in label[part].items()} for part in ("fields", "derived")}
    torn = [
        {
            **row,
            "field": "+".join(OURS.get(name, name) for name in row["field"].split("+")),
            "values": [
                {**one, "field": OURS.get(one["field"], one["field"])} if "field" in one else one
                for one in row.get("values", ())
            ],
        }
        for row in label["contradictions"]
    ]
    return {**label, **fields, "contradictions": torn}


def trainer(label: Mapping[str, Any]) -> str:
    """The owner of the trainer that the tree is for: a repository, or `own`."""
    return "own" if label["source"].get("own") else str(label["source"]["repository"])


def scored(label: Mapping[str, Any], reading: Reading) -> Counter[str]:
    """The counts of one tree."""
    found: Counter[str] = Counter(trees=1)
    torn = {name: row for row in label["contradictions"] for name in row["field"].split("+")}
    found["stated"] = sum(
        not row.get("optional") and name not in torn for name, row in label["fields"].items()
    )
    for name, value in reading.values.items():
        if value.confidence <= LIBRARY_DEFAULT or name in UNLABELLED:
            continue
        known = [
            one["value"] for one in torn.get(name, {}).get("values", ()) if one.get("field", name) == name
        ]
        if any(equal(value.value, one) for one in known):
            continue  # one side of a contradiction counts neither way
        wanted = None if name in torn else label["fields"].get(name) or label["derived"].get(name)
        right = wanted is not None and any(
            equal(value.value, one) for one in (wanted["value"], *wanted.get("accept", ()))
        )
        found["filled"] += 1
        found["right"] += right
        found["found"] += bool(
            right and name in label["fields"] and wanted is not None and not wanted.get("optional")
        )
        found["sure"] += value.confidence >= SURE
        found["sure and wrong"] += value.confidence >= SURE and not right
    return found


def shares(found: Mapping[str, int]) -> dict[str, float | None]:
    """Return precision, recall and the share of confidently wrong values.

    They are None where nothing counts.
    """
    return {
        "precision": _share(found["right"], found["filled"]),
        "recall": _share(found["found"], found["stated"]),
        "wrong_confident": _share(found["sure and wrong"], found["sure"]),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def equal(one: Any, other: Any) -> bool:
    """Texts are compared folded, lists as sets, numbers within a millionth."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-6 * abs(other) + 1e-15
    left, right = _folded(one), _folded(other)
    return type(left) is type(right) and bool(left == right)


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip().rstrip("/").lower()
        return _folded(text.split(",")) if "," in text else text
    if isinstance(value, list):
        folded = frozenset(_folded(str(one)) for one in value)
        return next(iter(folded)) if len(folded) == 1 else folded
    return value


def baseline(tree: Tree) -> Reading:
    """Read by the yardstick: the first mention of any known name.

    That is `name = value`, `name: value` or `--name value`.
    """
    values: dict[str, FieldValue] = {}
    for file, text in (*tree.files.items(), ("command", tree.command or "")):
        for found in re.finditer(r"[\"']?([A-Za-z][\w-]*)[\"']?\s*[=:\s]\s*[\"']?([^\s\"',)]+)", text):
            alias = ALIASES.get(found[1].lower().replace("-", "_"))
            if alias is None or alias[0] in values or alias[0] not in CLEAN:
                continue
            value = CLEAN[alias[0]](found[2])
            if value is not None:
                line = text.count("\n", 0, found.start()) + 1
                values[alias[0]] = FieldValue(value=value, confidence=0.8, evidence=(Location(file, line),))
    return Reading(values=values)
