"""Write everything worth keeping into one file, while the portal runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from portal.clock import database_now
from portal.ops.backup.errors import ArchiveError
from portal.ops.backup.writing import write_archive


class Command(BaseCommand):
    help = (
        "Write the database, uploads, artifacts and predictors into one tar file; the portal may run "
        "meanwhile. The SECRET_KEY is not in it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", type=Path, help="a folder, which gets a file with the time, or a file")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            path = write_archive(options["target"], now=database_now())
        except ArchiveError as failed:
            raise CommandError(str(failed)) from failed
        except (OSError, DatabaseError) as failed:
            raise CommandError(f"The backup cannot be written: {failed}") from failed
        self.stdout.write(f"{path}: {path.stat().st_size:,} bytes")
