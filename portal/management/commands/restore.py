"""Put a backup back, after all of it was checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from portal.accounts.services import audit
from portal.clock import database_now
from portal.ops.backup.errors import ArchiveError
from portal.ops.backup.reading import restore


class Command(BaseCommand):
    help = (
        "Replace this portal's database and files by those of a backup, and migrate it to this version. "
        "Stop web, workers and beat first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="a file that `backup` wrote")
        parser.add_argument("--force", action="store_true", help="even if there are people or files")

    def handle(self, *_: Any, **options: Any) -> None:
        archive: Path = options["archive"]
        try:
            manifest = restore(archive, force=options["force"])
        except ArchiveError as refused:
            raise CommandError(str(refused)) from refused
        except (OSError, DatabaseError) as failed:
            raise CommandError(f"The backup cannot be restored: {failed}") from failed
        call_command("migrate", verbosity=0)
        data = {"archive": archive.name, "made": manifest.created_at}
        audit(action="backup restored", target=archive.name, data=data, now=database_now())
        self.stdout.write(f"Restored what was here on {manifest.created_at}: {len(manifest.members)} files.")
