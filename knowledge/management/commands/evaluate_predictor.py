"""Train on some files, predict others, and write how far off the predictions were."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.core import evaluate
from knowledge.core.rows import Row
from knowledge.core.sources import registry
from knowledge.core.sources.table import BadTable


class Command(BaseCommand):
    help = "Train on files alone (no database, no shipped data) and evaluate on other files."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--train", nargs="+", required=True, metavar="FILE")
        parser.add_argument("--test", nargs="+", required=True, metavar="FILE")
        parser.add_argument("--source", choices=sorted(registry.SOURCES))
        parser.add_argument("--json", required=True, metavar="OUT")

    def handle(self, *, train: list[str], test: list[str], source: str | None, **options: Any) -> None:
        known, unseen = _rows(train, source), _rows(test, source)
        began = time.perf_counter()
        predictor = evaluate.predictor(known)
        trained = time.perf_counter()
        figures = evaluate.metrics(predictor, unseen)
        figures["train_s"] = trained - began
        figures["predict_s"] = time.perf_counter() - trained
        Path(options["json"]).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        self.stdout.write(json.dumps(figures, indent=1))


def _rows(names: list[str], source: str | None) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        try:
            rows += registry.parse(Path(name).read_text(encoding="utf-8"), source)
        except (OSError, UnicodeDecodeError, BadTable) as wrong:
            raise CommandError(f"{name}: {wrong}") from wrong
    return rows
