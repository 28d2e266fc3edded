"""Write knowledge/data/executions.csv from LLMFineTuningBench's runs.csv."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import generic, lfb


class Command(BaseCommand):
    help = "Convert the rows whose origin begins with page: into our own schema."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUNS.CSV")
        parser.add_argument("out", metavar="OUT.CSV")

    def handle(self, *, runs: str, out: str, **_: Any) -> None:
        rows = [
            replace(row, source="llmfinetuningbench")
            for row in lfb.parse(Path(runs).read_text(encoding="utf-8"), shipped_catalogue())
            if row.origin.startswith("page:")
        ]
        Path(out).write_text(generic.write(rows), encoding="utf-8")
        self.stdout.write(f"{len(rows)} rows written to {out}")
