"""Write knowledge/data/executions.csv from LLMFineTuningBench's runs.csv."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import generic, lfb
from knowledge.core.data.sources.table import BadTable
from knowledge.core.domain.wording import counted


class Command(BaseCommand):
    help = "Convert the rows whose origin begins with page: into our own schema."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUNS.CSV")
        parser.add_argument("out", metavar="OUT.CSV")

    def handle(self, *, runs: str, out: str, **_: Any) -> None:
        try:
            read = lfb.parse(Path(runs).read_text(encoding="utf-8"), shipped_catalogue())
        except (OSError, UnicodeDecodeError) as unreadable:
            raise CommandError(f"{runs} cannot be read as UTF-8 text: {unreadable}") from unreadable
        except BadTable as wrong:
            raise CommandError(f"{runs}: nothing was written. {wrong}") from wrong
        rows = [replace(row, source="llmfinetuningbench") for row in read if row.origin.startswith("page:")]
        if not rows:
            raise CommandError(f"{runs}: nothing was written. No row has an origin that begins with page:.")
        try:
            Path(out).write_text(generic.write(rows), encoding="utf-8")
        except OSError as unwritable:
            raise CommandError(f"{out} cannot be written: {unwritable}") from unwritable
        self.stdout.write(f"{counted(len(rows), 'row')} written to {out}")
