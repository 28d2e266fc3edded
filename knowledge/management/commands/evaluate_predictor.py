"""Train on some files, predict every row of others, and write the errors.

Models and GPUs that the catalogue lacks take the facts of the most similar entry, and are
named.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.data.sources.table import BadTable
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.catalogue.fallback import nearest_catalogue
from knowledge.core.evaluate import evaluation


class Command(BaseCommand):
    help = "Train on files alone (no database, no shipped data) and evaluate on other files."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--train", nargs="+", required=True, metavar="FILE")
        parser.add_argument("--test", nargs="+", required=True, metavar="FILE")
        parser.add_argument("--source", choices=sorted(registry.SOURCES))
        parser.add_argument("--json", required=True, metavar="OUT")

    def handle(self, *, train: list[str], test: list[str], source: str | None, **options: Any) -> None:
        out = Path(options["json"])
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise CommandError(f"--json {out}: name a file in a folder that exists.")
        catalogue = nearest_catalogue(shipped_catalogue())
        known, unseen = _rows(train, source, catalogue), _rows(test, source, catalogue)
        found = _judged(known, unseen, catalogue)
        names = {
            name: alike for row in (*known, *unseen) for name, alike in catalogue.borrowed(row.config).items()
        }
        unknown = [row for row in unseen if not names.keys().isdisjoint(_names(row))]
        text = json.dumps({**found, "unknown_rows": len(unknown)}, indent=1, allow_nan=False)
        out.write_text(text + "\n", encoding="utf-8")
        self.stdout.write(text)
        for name, known_name in sorted(names.items()):
            self.stderr.write(
                f"{name!r} is not in the catalogue and was predicted with {known_name}'s facts."
            )


def _judged(
    known: Sequence[Measurement], unseen: Sequence[Measurement], catalogue: Catalogue
) -> dict[str, float | int | None]:
    began = time.perf_counter()
    predictor = evaluation.predictor(known, catalogue)
    trained = time.perf_counter()
    found = evaluation.figures(predictor, unseen)
    return {**found, "train_s": trained - began, "predict_s": time.perf_counter() - trained}


def _names(row: Measurement) -> tuple[str, str]:
    return row.config.model_name, row.config.gpu_model


def _rows(names: list[str], source: str | None, catalogue: Catalogue) -> list[Measurement]:
    rows: list[Measurement] = []
    for name in names:
        try:
            rows += registry.parse(Path(name).read_text(encoding="utf-8"), catalogue, source)
        except (OSError, UnicodeDecodeError) as unreadable:
            raise CommandError(f"{name} cannot be read as UTF-8 text: {unreadable}") from unreadable
        except BadTable as wrong:
            raise CommandError(f"{name}: {wrong}") from wrong
    return rows
