"""Training files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click

from .base import Session, command, note, pairs

FILE = click.argument("file")
HERE = click.Path(path_type=Path, exists=True, dir_okay=False)
THERE = click.Path(path_type=Path, dir_okay=False)
MOST_COMPLAINTS = 20


@click.group("files")
def files_command() -> None:
    """Training files: JSON Lines or a JSON array."""


@command("put", parent=files_command)
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE...",
)
def put(session: Session, paths: Sequence[Path]) -> None:
    """Upload files; what the portal holds already is not sent again."""
    for path in paths:
        file = session.client.files.upload(path)
        if session.as_json:
            session.line(file.raw)
        else:
            note(f"{file.filename}: {file.rows:,} rows, {file.format}")
            click.echo(file.id)


@command("ls", parent=files_command)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def ls(session: Session, limit: int) -> None:
    """List your files and your teams', newest first."""
    from .._tables import moment, size

    found = session.client.files.list(limit=min(limit, 100))
    session.rows(
        [file.raw for file in islice(found, limit)],
        {
            "id": lambda file: file["id"],
            "~name": lambda file: file["filename"],
            ">rows": lambda file: f"{file['rows']:,}",
            ">size": lambda file: size(file["bytes"]),
            "format": lambda file: file["format"],
            "uploaded": lambda file: moment(file["created_at"]),
        },
        none="No files: foretune files put FILE",
    )


@command("show", parent=files_command)
@FILE
def show(session: Session, file: str) -> None:
    """Show one file."""
    found = session.client.files.find(file)
    session.show(found.raw, lambda: pairs((name, _text(value)) for name, value in found.raw.items()))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@command("get", parent=files_command)
@FILE
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to; else its own name."
)
def get(session: Session, file: str, output: Path | None) -> None:
    """Download a file; what broke off goes on where it did."""
    files = session.client.files
    found = files.find(file)
    path = output or Path(Path(found.filename).name)
    if output is None and path.exists():
        raise click.UsageError(f"{path} is there already; -o names another place.")
    files.download(found, path)
    session.show({"path": str(path)}, lambda: str(path))


@command("rm", parent=files_command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def rm(session: Session, files: Sequence[str]) -> None:
    """Delete files; refused while a job that has not ended needs one."""
    found = [session.client.files.find(file) for file in files]
    for file in found:
        session.client.files.delete(file)
        if session.as_json:
            session.line({"id": file.id, "deleted": True})
        else:
            note(f"{file.filename} ({file.id}) is deleted.")


@command("check", parent=files_command)
@click.argument("path", type=HERE)
def check(session: Session, path: Path) -> int:
    """Read JSON Lines on this machine: wrong lines, and fields of the others.

    Nothing is sent. What can be trained on is judged by the portal when a file is uploaded.
    """
    rows, fields, complaints = 0, dict[str, int](), list[dict[str, Any]]()
    with path.open("rb") as opened:
        for number, line in enumerate(opened, start=1):
            if not line.strip():
                continue
            rows += 1
            found = _row(line)
            if isinstance(found, str):
                complaints.append({"line": number, "message": found})
                continue
            for name in found:
                fields[name] = fields.get(name, 0) + 1
    told = {"rows": rows, "fields": fields, "lines": complaints[:MOST_COMPLAINTS], "wrong": len(complaints)}
    session.show(told, lambda: _checked(told))
    return 2 if complaints or not rows else 0


def _row(line: bytes) -> Mapping[str, Any] | str:
    """A row, or what is wrong with the line."""
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return "is not UTF-8"
    except (ValueError, RecursionError) as wrong:
        return f"is no JSON: {wrong}"
    return row if isinstance(row, dict) else "is no JSON object"


def _checked(told: Mapping[str, Any]) -> str:
    lines = [f"{told['rows']:,} rows, {told['wrong']:,} of them wrong"]
    lines += [f"  {name}: in {count:,} rows" for name, count in told["fields"].items()]
    lines += [f"  line {one['line']}: {one['message']}" for one in told["lines"]]
    return "\n".join(lines)
