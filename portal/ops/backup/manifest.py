"""The manifest of an archive: its content, kind of database, and version."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from portal.ops.backup.errors import BadArchive, WrongPortal
from trainer import strict_json

NAME = "manifest.json"
DATABASE = "database"
FOLDERS = ("files", "artifacts", "predictors")  # of DATA_DIR
FORMAT = 1
MAX_BYTES = 100_000_000
MAX_VALUES = 4_000_000  # three for each file


@dataclass(frozen=True, slots=True)
class Member:
    """One file of the archive: SHA-256 in hexadecimal and its size."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of an archive.

    vendor: `sqlite` or `postgresql`.
    migrations: those applied, as `app.name`.
    members: by name.
    """

    created_at: str
    vendor: str
    migrations: list[str]
    members: dict[str, Member]
    format: int = FORMAT

    def dump(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()


def present(*, now: datetime, members: dict[str, Member]) -> Manifest:
    """The manifest of this portal as it is now."""
    applied = MigrationRecorder(connection).applied_migrations()
    names = sorted(f"{app}.{name}" for app, name in applied)
    return Manifest(created_at=now.isoformat(), vendor=connection.vendor, migrations=names, members=members)


def parse(raw: bytes) -> Manifest:
    """Raises BadArchive."""
    try:
        found: dict[str, Any] = strict_json.loads(raw, max_values=MAX_VALUES)
        if found["format"] != FORMAT:
            raise BadArchive(f"The archive has format {found['format']}; this version reads {FORMAT}.")
        members = {str(name): Member(**values) for name, values in found.pop("members").items()}
        return Manifest(members=members, **found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadArchive(f"Its {NAME} cannot be read ({type(error).__name__}).") from error


def check_fits(manifest: Manifest) -> None:
    """Check that this portal's database and version can take the archive.

    Raises WrongPortal if they cannot.
    """
    if manifest.vendor != connection.vendor:
        raise WrongPortal(
            f"The archive was made from {manifest.vendor}, and DATABASE_URL names {connection.vendor}. "
            "Restore it into a database of its own kind."
        )
    on_disk = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    known = {f"{app}.{name}" for app, name in on_disk}
    if newer := sorted(set(manifest.migrations) - known):
        raise WrongPortal(f"The archive was made by a newer version ({newer[0]}): upgrade this portal first.")
