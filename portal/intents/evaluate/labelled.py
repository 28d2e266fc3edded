"""A labelled set: one JSON object a line, read, answered and scored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.types import GpuPool, Inventory
from knowledge.language.server import ChatServer
from portal.intents.core.combine import shown
from portal.intents.core.reading import read
from portal.intents.core.types import IntentReading, NodeKind, Setting
from portal.intents.draft import complaints, place_complaints
from portal.intents.evaluate import baseline
from portal.intents.evaluate.scoring import score
from portal.intents.language_model import helped_reading

REPORTED = (
    "cases", "precision", "recall", "f1", "exact", "wrong_stated", "needed_asked", "asked_without_need",
    "forbidden_filled",
)  # fmt: skip
P95 = 0.95
OURS = {"method": "tuning"}  # fields that labelled sets call otherwise


class BadSet(ValueError):
    """A set that cannot be read; the message names the line and the remedy."""


def cases_of(path: Path) -> list[dict[str, Any]]:
    """The cases of a file. Raises BadSet."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadSet(f"{path} cannot be read ({wrong}); give a JSONL file in UTF-8") from wrong
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            setting_of(case)
            gold = _in_our_names(dict(case["gold"]))
            found.append({**case, "id": case["id"], "text": str(case["text"]), "gold": gold})
        except (KeyError, TypeError, ValueError, ZoneInfoNotFoundError) as wrong:
            raise BadSet(
                f"line {number} is no case ({wrong!r}); see the format in docs/intents.md"
            ) from wrong
    if not found:
        raise BadSet(f"{path} holds no case")
    return found


def _in_our_names(gold: dict[str, Any]) -> dict[str, Any]:
    """A form with fields named as ours are, where the set calls them otherwise."""

    def ours(part: Any) -> Any:
        if isinstance(part, dict):
            return {OURS.get(name, name): row for name, row in part.items()}
        return [ours(name) for name in part] if isinstance(part, list) else OURS.get(part, part)

    named: dict[str, Any] = {part: ours(gold[part]) for part in ("fields", "forbidden") if part in gold}
    if question := gold.get("question"):
        asked = {part: ours(question[part]) for part in ("field", "or") if part in question}
        named["question"] = {**question, **asked}
    if "fields" in gold.get("optional", {}):
        named["optional"] = {**gold["optional"], "fields": ours(gold["optional"]["fields"])}
    return {**gold, **named}


def setting_of(case: dict[str, Any]) -> Setting:
    """The setting that a case gives, with the shipped catalogue."""
    return Setting(
        now=datetime.fromisoformat(case["now"]),
        zone=ZoneInfo(case["timezone"]),
        catalogue=shipped_catalogue(),
        files=tuple(case.get("files", ())),
        nodes=tuple(NodeKind(**kind) for kind in case.get("nodes", ())),
        newest_job_file=case.get("newest_job_file"),
        teams=tuple(case.get("teams", ())),
        currency=case.get("currency", ""),
    )


def inventory_of(setting: Setting) -> Inventory:
    """The nodes of a case. A job may use all of one kind: a case knows no other limit."""
    sizes: dict[str, list[int]] = {}
    for kind in setting.nodes:
        sizes.setdefault(kind.gpu_model, []).extend([kind.gpus] * kind.nodes)
    pools = tuple(
        GpuPool(gpu_model=name, node_sizes=tuple(sorted(found)), memory_bytes=80 << 30)
        for name, found in sizes.items()
    )
    return Inventory(pools=pools, max_nodes=max((len(found) for found in sizes.values()), default=1))


def answer_of(reading: IntentReading, setting: Setting) -> dict[str, Any]:
    """A reading in the form that is scored."""
    places = place_complaints(reading.fields, lambda: inventory_of(setting), setting.catalogue)
    question = reading.question
    return {
        "fields": {n: {"value": shown(f.value), "origin": f.origin} for n, f in reading.fields.items()},
        "question": question
        and {
            "field": question.field,
            "choices": [shown(offer.value) for offer in question.choices if offer.field == question.field],
        },
        "complaints": sorted({*places, *reading.complaints, *complaints(reading.fields, setting.now)}),
    }


def evaluate(cases: Sequence[dict[str, Any]], server: ChatServer | None = None) -> dict[str, Any]:
    """Measure the readers, the baseline's F1 and the time.

    With a server, its help is measured beside them (`with_model`).

    The time is the 95th percentile of the readers' on one core, in ms: the clock also tells how busy the
    machine is.
    """
    answers, plain, took = {}, {}, []
    if cases:
        read(
            "", setting_of(cases[0])
        )  # the catalogue's names are indexed once a process, not by each sentence
    for case in cases:
        setting = setting_of(case)
        begun = time.process_time()
        reading = read(case["text"], setting)
        took.append(time.process_time() - begun)
        answers[case["id"]] = answer_of(reading, setting)
        plain[case["id"]] = {"fields": baseline.read(case["text"], setting)}
    gpu = shipped_catalogue().gpu_key
    scores = score(cases, answers, gpu)
    reported = {name: scores[name] for name in REPORTED}
    p95 = sorted(took)[min(len(took) - 1, int(P95 * len(took)))] * 1000
    return {
        **reported,
        "baseline_f1": score(cases, plain, gpu)["f1"],
        "p95_ms": p95,
        **({"with_model": _helped(cases, server, gpu)} if server else {}),
    }


def _helped(
    cases: Sequence[dict[str, Any]], server: ChatServer, gpu: Callable[[str], str]
) -> dict[str, float | int]:
    answers = {}
    for case in cases:
        setting = setting_of(case)
        answers[case["id"]] = answer_of(helped_reading(case["text"], setting, server), setting)
    scores = score(cases, answers, gpu)
    return {name: scores[name] for name in REPORTED}
