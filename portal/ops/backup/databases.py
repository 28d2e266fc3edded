"""Copies of the database.

They are taken while it is in use, and put back in one transaction.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection, connections

from portal.ops.backup.errors import BadArchive, ToolFailed, WrongPortal

# Nobody may read half of the old and half of the new; a process that holds a table gets this long to go.
FRESH_SCHEMA = "SET lock_timeout = '15s';\nDROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\n"
VARIABLES = {
    "PGHOST": "HOST",
    "PGPORT": "PORT",
    "PGUSER": "USER",
    "PGPASSWORD": "PASSWORD",
    "PGDATABASE": "NAME",
}
SSL_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def dump(target: Path) -> None:
    """Write the whole database as of one moment to `target`.

    Raises ToolFailed, WrongPortal.
    """
    if _is_sqlite():
        with closing(sqlite3.connect(_sqlite_file())) as live, closing(sqlite3.connect(target)) as copy:
            live.backup(copy)
        return
    _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")


def load(source: Path) -> None:
    """Replace the whole database by what `dump` wrote: completely, or not at all.

    Raises BadArchive, ToolFailed, WrongPortal.
    """
    connections.close_all()
    if _is_sqlite():
        _load_sqlite(source)
    else:
        _load_postgres(source)


def program(name: str) -> str:
    """The path of a client program of PostgreSQL. Raises ToolFailed."""
    found = shutil.which(name)
    if found is None:
        raise ToolFailed(f"{name} is not installed: on Debian and Ubuntu, apt-get install postgresql-client.")
    return found


def _is_sqlite() -> bool:
    if connection.vendor not in ("sqlite", "postgresql"):
        raise WrongPortal(f"Backups are for SQLite and PostgreSQL, not for {connection.vendor}.")
    return connection.vendor == "sqlite"


def _sqlite_file() -> str:
    return str(connection.settings_dict["NAME"])


def _load_sqlite(source: Path) -> None:
    """Load a SQLite copy in one transaction of the live file, under its locks.

    SQLite's backup does this.
    """
    Path(_sqlite_file()).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(sqlite3.connect(source)) as copy, closing(sqlite3.connect(_sqlite_file())) as live:
        try:
            sound = copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        except sqlite3.DatabaseError as error:
            raise BadArchive(f"Its database is damaged ({error}).") from error
        if not sound:
            raise BadArchive("Its database is damaged.")
        try:
            copy.backup(live)
        except sqlite3.OperationalError as busy:
            raise ToolFailed(f"SQLite says: {busy}. Stop web, workers and beat first.") from busy


def _load_postgres(source: Path) -> None:
    """Load a PostgreSQL dump as SQL, complete before psql sees any of it.

    A part would be committed as if it were all.
    """
    sql, fresh = source.with_suffix(".sql"), source.with_suffix(".fresh.sql")
    fresh.write_text(FRESH_SCHEMA)
    _run("pg_restore", "--no-owner", "--no-privileges", f"--file={sql}", str(source))
    strictly = ("--single-transaction", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1")
    _run("psql", *strictly, f"--file={fresh}", f"--file={sql}")


def _run(name: str, *arguments: str) -> None:
    """Raises ToolFailed with what the program said."""
    done = subprocess.run([program(name), *arguments], env=_environment(), capture_output=True, text=True)
    if done.returncode:
        raise ToolFailed(f"{name} failed; nothing was changed. It said: {done.stderr.strip()[-1000:]}")


def _environment() -> dict[str, str]:
    """Return the environment by which the client programs find the database.

    A password in the arguments would show in process lists.
    """
    about = connection.settings_dict
    given = {variable: str(about[key]) for variable, key in VARIABLES.items() if about.get(key)}
    options = about.get("OPTIONS", {})
    given |= {f"PG{name.upper()}": str(options[name]) for name in SSL_OPTIONS if name in options}
    return {**os.environ, **given}
