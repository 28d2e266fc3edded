"""A setting in which sentences are said, and the reading in short."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from portal.intents.core.combine import shown
from portal.intents.core.reading import read
from portal.intents.core.types import IntentReading, NodeKind, Setting

FILES = ("support-faq.jsonl", "tickets-2025.jsonl", "poems.jsonl")
TUESDAY = datetime.fromisoformat("2026-03-10T15:00:00+01:00")


def setting(**changes: Any) -> Setting:
    """A Tuesday in Berlin: three files, A100 and L40S nodes, two teams."""
    usual: dict[str, Any] = {
        "now": TUESDAY,
        "zone": ZoneInfo("Europe/Berlin"),
        "catalogue": shipped_catalogue(),
        "files": FILES,
        "nodes": (NodeKind(gpu_model="A100-SXM4-80GB", gpus=8, nodes=2), NodeKind(gpu_model="L40S", gpus=4)),
        "newest_job_file": "tickets-2025.jsonl",
        "teams": ("nlp", "search"),
    }
    return Setting(**{**usual, **changes})


def said(text: str, **changes: Any) -> IntentReading:
    return read(text, setting(**changes))


def values(text: str, **changes: Any) -> dict[str, Any]:
    """The fields that a sentence fills, as JSON has them."""
    return {name: shown(field.value) for name, field in said(text, **changes).fields.items()}


def unknown(text: str) -> list[str]:
    return [text[start:end] for start, end in said(text).unknown]
