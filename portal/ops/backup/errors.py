"""Errors of backups.

ArchiveError
├── NoFolder         the backup has no place
├── NotOurs          another file has its place
├── BadArchive       the file is no archive of ours, or not what its manifest says
├── WrongPortal      a good archive that this portal cannot take: other database, newer version
├── NotEmpty         the portal holds something, and --force was not given
└── ToolFailed       a program of PostgreSQL is missing or failed
"""

from __future__ import annotations


class ArchiveError(Exception):
    """The message says what happened and what to do."""


class NoFolder(ArchiveError):
    """The folder that shall take the backup is not there."""


class NotOurs(ArchiveError):
    """The file that the backup would replace is none."""


class BadArchive(ArchiveError):
    """The file is damaged, cut short, or was never an archive."""


class WrongPortal(ArchiveError):
    """The archive belongs to a portal of another kind or of a newer version."""


class NotEmpty(ArchiveError):
    """There is something to lose here."""


class ToolFailed(ArchiveError):
    """pg_dump, pg_restore or psql is missing, or said no."""
