"""Read labelled trees of training scripts and score the reader.

The score says how much of what they state was understood.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.reading import evaluation
from knowledge.reading.reader import read

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
        text = json.dumps(figures, indent=1, allow_nan=False)
        out.write_text(text + "\n", encoding="utf-8")
        self.stdout.write(text)


def _figures(found: Counter[str], plain: Counter[str]) -> dict[str, Any]:
    yardstick = evaluation.shares(plain)
    return {
        "trees": found["trees"],
        **evaluation.shares(found),
        "baseline_precision": yardstick["precision"],
        "baseline_recall": yardstick["recall"],
    }
