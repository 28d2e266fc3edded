"""Export executions as the CSV that `import_history --source csv` reads."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.core.data.sources import generic
from knowledge.core.domain.wording import counted
from knowledge.selectors import exported


class Command(BaseCommand):
    help = "Write executions to a CSV file; texts that a spreadsheet would execute are escaped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("out", metavar="OUT.CSV")
        parser.add_argument("--own", action="store_true", help="only what was measured here")
        parser.add_argument(
            "--paths", action="store_true", help="name models in folders by their whole path, not its end"
        )

    def handle(self, *, out: str, own: bool, paths: bool, **_: Any) -> None:
        if not out.endswith(".csv"):
            raise CommandError(f"{out}: name a file that ends in .csv")
        found = list(exported(own=own, paths=paths))
        try:
            Path(out).write_text(generic.write(found), encoding="utf-8")
        except OSError as unwritable:
            raise CommandError(f"{out} cannot be written: {unwritable}") from unwritable
        self.stdout.write(f"{counted(len(found), 'execution')} written to {out}")
