"""Scores of answers against the forms of a labelled set.

The rules are those of the set's README.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]


def canonical(field: str, value: object, gpu: Callable[[str], str] = str) -> object:
    """Return numbers as numbers, times as instants, names folded.

    Raises ValueError for a time that is none.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return round(float(value), 12)
    text = str(value).strip()
    if field == "deadline_at":
        return datetime.fromisoformat(text).timestamp()
    if field == "model":
        text = re.sub(r"Meta-Llama-3\.1", "Llama-3.1", text)
    return gpu(text).lower() if field == "gpu_model" else text.lower()


def score(
    cases: Sequence[Json], answers: Mapping[str, Json], gpu: Callable[[str], str] = str
) -> dict[str, float | int]:
    """The metrics of a reader; `gpu` gives the catalogue's own name of a GPU."""
    n: Counter[str] = Counter()
    for case in cases:
        answer = answers.get(case["id"], {})
        _fields(case["gold"], answer, n, gpu)
        _count_questions(case["gold"], answer, n, gpu)
        complaints, wanted = set(answer.get("complaints", ())), case["gold"].get("complaints", ())
        n["complaints"] += len(wanted)
        n["complained"] += len(complaints & set(wanted))
    precision, recall = _share(n["right"], n["filled"]), _share(n["right"], n["gold"])
    return {
        "cases": len(cases),
        "precision": precision,
        "recall": recall,
        "f1": _share(2 * precision * recall, precision + recall),
        "exact": _share(n["exact"], len(cases)),
        "right_origin": _share(n["right origin"], n["right"]),
        "wrong_stated": _share(n["wrong stated"], n["filled"]),
        "needed_asked": _share(n["asked"], n["needed"]),
        "asked_without_need": _share(n["needless"], len(cases)),
        "complaints_raised": _share(n["complained"], n["complaints"]),
        "forbidden_filled": n["forbidden"],
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _equal(field: str, a: object, b: object, gpu: Callable[[str], str]) -> bool:
    try:
        return canonical(field, a, gpu) == canonical(field, b, gpu)
    except ValueError:
        return False


def _fields(gold: Json, answer: Json, n: Counter[str], gpu: Callable[[str], str]) -> None:
    filled, wanted = answer.get("fields", {}), gold["fields"]
    allowed = gold.get("optional", {}).get("fields", {})
    exact = all(name in filled for name in wanted)
    for name, row in filled.items():
        if name not in wanted and name in allowed and _equal(name, row["value"], allowed[name]["value"], gpu):
            continue  # an optional field that is right counts for neither
        good = name in wanted and _equal(name, row["value"], wanted[name]["value"], gpu)
        n["filled"] += 1
        n["right"] += good
        n["right origin"] += good and row.get("origin") == wanted[name]["origin"]
        n["wrong stated"] += row.get("origin") == "stated" and not good
        exact &= good
    n["gold"] += len(wanted)
    n["exact"] += exact
    n["forbidden"] += sum(name in filled for name in gold.get("forbidden", ()))


def _count_questions(gold: Json, answer: Json, n: Counter[str], gpu: Callable[[str], str]) -> None:
    given, needed = answer.get("question"), gold.get("question")
    if not needed:
        n["needless"] += bool(given and not gold.get("optional", {}).get("questions"))
        return
    n["needed"] += 1
    also = needed.get("or", ())
    if given and given["field"] in {needed["field"], *([also] if isinstance(also, str) else also)}:
        among = {canonical(needed["field"], one, gpu) for one in needed.get("among", ())}
        offered = (canonical(given["field"], one, gpu) for one in given.get("choices", ()))
        n["asked"] += not among or all(one in among for one in offered)
