"""What all commands share: options, the connection, and how answers are printed."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from .._sync.client import Client

Function = Callable[..., Any]
Columns = Mapping[str, Callable[[Any], str]]


def command(
    name: str, *, parent: click.Group | None = None, help_text: str | None = None
) -> Callable[[Function], click.Command]:
    """A command with the options that every one has."""

    def made(function: Function) -> click.Command:
        @functools.wraps(function)
        def called(ctx: click.Context, as_json: bool, profile: str, no_color: bool, **given: Any) -> Any:
            if no_color or os.environ.get("NO_COLOR"):
                ctx.color = False
            return function(Session(profile, as_json), **given)

        own = called.__dict__.pop("__click_params__", [])
        whole = click.command(name, help=help_text)(click.pass_context(called))
        whole.params = [*reversed(own), *_common()]
        if parent is not None:
            parent.add_command(whole)
        return whole

    return made


def _common() -> list[click.Parameter]:
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, with the API's own names."),
        click.Option(["--profile"], default="", help="Whose portal and token (FORETUNE_PROFILE)."),
        click.Option(["--no-color"], is_flag=True, help="No colours (NO_COLOR)."),
    ]


class Session:
    """One call of a command: which portal it asks, and how it prints."""

    def __init__(self, profile: str, as_json: bool) -> None:
        self.profile, self.as_json = profile, as_json

    @functools.cached_property
    def client(self) -> Client:
        from .._sync.client import Client

        return Client(profile=self.profile)

    def show(self, raw: Any, text: Callable[[], str]) -> None:
        """One object: its JSON, or as people read it."""
        click.echo(dumps(raw) if self.as_json else text())

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Columns, *, none: str) -> None:
        """A list as a table.

        columns: by heading (see `table`), what is shown of a row; empty ones are left out. none: what is
        said where there are no rows.
        """
        from .._tables import table

        if self.as_json:
            return click.echo(dumps({"data": list(rows)}))
        if not rows:
            return click.echo(none, err=True)
        shown = {heading: [show(row) for row in rows] for heading, show in columns.items()}
        filled = {heading: cells for heading, cells in shown.items() if any(cells)}
        return click.echo(table(list(zip(*filled.values(), strict=True)), list(filled), width=width()))

    def done(self, text: str, **told: Any) -> None:
        """What was done: a sentence for people, JSON for programs."""
        note(text)
        if self.as_json:
            click.echo(dumps(told))

    def line(self, raw: Any) -> None:
        """One line of JSON, of something that goes on."""
        click.echo(json.dumps(raw, ensure_ascii=False))
        sys.stdout.flush()


def list_rows(session: Session, collection: Any, columns: Columns, *, none: str, **filters: Any) -> None:
    """All objects of a kind as a table."""
    session.rows([row.raw for row in collection.list(**filters)], columns, none=none)


def sure(question: str, yes: bool) -> None:
    """Ask before what cannot be taken back.

    Raises UsageError where nobody can be asked, and Abort.
    """
    if yes:
        return
    if not on_terminal():
        raise click.UsageError(f"{question} Nobody can be asked here: --yes does it.")
    click.confirm(question, default=False, abort=True, err=True)


def dumps(raw: Any) -> str:
    return json.dumps(raw, indent=2, ensure_ascii=False)


def width() -> int:
    """Characters of a line; 0, no limit, where there is no terminal and none is told."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return 0


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values below each other, without those that are empty."""
    from .._tables import plain

    shown = [(name, plain(value)) for name, value in rows if value]
    wide = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name:{wide}}  {value}" for name, value in shown)


def note(text: str) -> None:
    """For people, beside the data."""
    click.echo(text, err=True)


def on_terminal() -> bool:
    """Can somebody be asked?"""
    return sys.stdin.isatty() and sys.stderr.isatty()


def named(value: Any) -> str:
    """A team, person or text as one word."""
    if isinstance(value, Mapping):
        return str(value.get("name") or value.get("username") or value.get("id") or "")
    return "" if value is None else str(value)
