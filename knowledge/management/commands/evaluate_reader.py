"""Read labelled trees of training scripts and score the reader.

The score says how much of what they state was understood.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from knowledge.language.chat import NoAnswer
from knowledge.language.server import ChatServer
from knowledge.reading import evaluation
from knowledge.reading.agent.merging import merged, open_fields
from knowledge.reading.agent.runs import read_with_model
from knowledge.reading.reader import read
from knowledge.reading.types import Reading, Tree

Counts = dict[str, Counter[str]]


class Command(BaseCommand):
    help = "Evaluate the reader of scripts on labelled trees (no database, no user code is run)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--set", required=True, metavar="FOLDER", help="holds ID/tree and ID/label.json")
        parser.add_argument("--json", required=True, metavar="OUT")

    def handle(self, *args: Any, **options: Any) -> None:
        folder, out = Path(options["set"]), Path(options["json"])
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise CommandError(f"--json {out}: name a file in a folder that exists.")
        cases = list(evaluation.labelled(folder))
        if not cases:
            raise CommandError(f"--set {folder}: no ID/label.json is below it.")
        counts: Counts = {}
        plain: Counts = {}
        began = time.perf_counter()
        readings = [read(tree) for _, tree in cases]
        seconds = time.perf_counter() - began
        for (label, tree), reading in zip(cases, readings, strict=True):
            for name in ("", evaluation.trainer(label)):
                counts.setdefault(name, Counter()).update(evaluation.scored(label, reading))
                plain.setdefault(name, Counter()).update(evaluation.scored(label, evaluation.baseline(tree)))
        by_source = {name: _figures(counts[name], plain[name]) for name in sorted(counts) if name}
        figures = _figures(counts[""], plain[""]) | {"by_source": by_source, "seconds": round(seconds, 3)}
        if server := settings.LANGUAGE_SERVERS["reader"]:
            figures["with_model"] = _with_model(cases, readings, server)
        text = json.dumps(figures, indent=1, allow_nan=False)
        out.write_text(text + "\n", encoding="utf-8")
        self.stdout.write(text)


def _with_model(
    cases: Sequence[tuple[dict[str, Any], Tree]], readings: Sequence[Reading], server: ChatServer
) -> dict[str, Any]:
    """Return the same table with the help of a language model.

    A tree that it fails at counts as the rules read it.
    """
    counts: Counts = {}
    for (label, tree), reading in zip(cases, readings, strict=True):
        try:
            helped = merged(reading, read_with_model(server, tree, reading, open_fields(reading)))
        except NoAnswer:
            helped = reading
        for name in ("", evaluation.trainer(label)):
            counts.setdefault(name, Counter()).update(evaluation.scored(label, helped))
    tables = {name: {"trees": found["trees"], **evaluation.shares(found)} for name, found in counts.items()}
    return tables.pop("") | {"by_source": dict(sorted(tables.items()))}


def _figures(found: Counter[str], plain: Counter[str]) -> dict[str, Any]:
    yardstick = evaluation.shares(plain)
    return {
        "trees": found["trees"],
        **evaluation.shares(found),
        "baseline_precision": yardstick["precision"],
        "baseline_recall": yardstick["recall"],
    }
