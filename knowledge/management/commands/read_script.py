"""Tell what a training script or its archive states, line by line.

Nothing of it is run.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.reading.manifest import UnreadableUpload, from_folder, from_upload
from knowledge.reading.reader import read
from knowledge.reading.reading_json import as_json
from knowledge.reading.types import Tree


class Command(BaseCommand):
    help = "Read a training script, its folder or an archive, and tell what it states."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a folder, an archive (zip, tar.gz) or one file")
        parser.add_argument("--command", dest="starts", help="the command line that starts the training")

    def handle(self, *args: Any, path: Path, starts: str | None, **options: Any) -> None:
        try:
            manifest = from_folder(path) if path.is_dir() else from_upload(path.name, path.read_bytes())
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
        except UnreadableUpload as error:
            raise CommandError(f"{path}: {error}") from error
        reading = read(Tree(manifest.files, starts))
        self.stdout.write(json.dumps(as_json(reading, manifest), indent=1))
