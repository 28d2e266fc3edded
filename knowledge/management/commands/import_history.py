"""Import past executions from CSV files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from knowledge.core.sources.registry import SOURCES
from knowledge.core.sources.table import BadTable
from knowledge.importing import import_history


class Command(BaseCommand):
    help = "Import past executions; a file with one bad row is not imported at all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE")
        parser.add_argument("--source", choices=sorted(SOURCES), help="found by the columns if left out")

    def handle(self, *, files: list[str], source: str | None, **_: Any) -> None:
        for name in files:
            try:
                text = Path(name).read_text(encoding="utf-8")
                report = import_history(text=text, source=source, now=timezone.now())
            except (OSError, UnicodeDecodeError) as unreadable:
                raise CommandError(f"{name} cannot be read as UTF-8 text: {unreadable}") from unreadable
            except BadTable as bad:
                lines = "\n".join(f"  line {line}, {column}: {what}" for line, column, what in bad.errors)
                raise CommandError(f"{name}: nothing was imported.\n{lines}") from bad
            self.stdout.write(f"{name}: {report}")
