"""Import past executions from CSV files or from a Hugging Face Hub data set."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from knowledge.core.data.sources.registry import SOURCES
from knowledge.core.data.sources.table import BadTable
from knowledge.importing import hub
from knowledge.importing.service import import_history
from portal.clock import database_now


class Command(BaseCommand):
    help = "Import past executions; a file with one bad row is not imported at all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files", nargs="+", metavar="FILE", help="CSV file, or hub:OWNER/NAME (HF_ENDPOINT: another hub)"
        )
        parser.add_argument("--source", choices=sorted(SOURCES), help="found by the columns if left out")

    def handle(self, *, files: list[str], source: str | None, **_: Any) -> None:
        for name in files:
            text, provenance = _read(name)
            try:
                report = import_history(text=text, source=source, now=database_now(), provenance=provenance)
            except BadTable as bad:
                lines = "\n".join(f"  line {line}, {column}: {what}" for line, column, what in bad.errors)
                raise CommandError(f"{name}: nothing was imported.\n{lines}") from bad
            self.stdout.write(f"{name}: {report}")
            if "licence" in provenance:
                self.stdout.write(
                    "  {path} at {revision}, licence {licence}, SHA-256 {sha256}".format(**provenance)
                )


def _read(name: str) -> tuple[str, dict[str, str]]:
    """The text and where it comes from."""
    try:
        if name.startswith(hub.PREFIX):
            found = hub.fetch(name.removeprefix(hub.PREFIX), settings.HF_ENDPOINT)
            return found.text, found.provenance
        return Path(name).read_text(encoding="utf-8"), {"file": Path(name).name}
    except (OSError, UnicodeDecodeError) as unreadable:
        raise CommandError(f"{name} cannot be read as UTF-8 text: {unreadable}") from unreadable
    except hub.HubError as failed:
        raise CommandError(f"{name}: nothing was imported. {failed}") from failed
