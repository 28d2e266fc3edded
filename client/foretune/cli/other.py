"""A raw call, and the release."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .base import Session, command, dumps, note

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@command("api")
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("path")
@click.option("-q", "--query", "queries", multiple=True, metavar="NAME=VALUE", help="A query parameter.")
@click.option("-d", "--data", metavar="JSON|@FILE|-", help="The body: JSON, a file with it, or stdin.")
@click.option("--key", default="", help="An Idempotency-Key; a POST with one is tried again.")
def api_command(
    session: Session, method: str, path: str, queries: Sequence[str], data: str | None, key: str
) -> None:
    """Call the REST API and print the answer: foretune api GET jobs/ -q limit=2"""
    query: dict[str, list[str]] = {}
    for one in queries:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise click.UsageError(f"-q {one}: write NAME=VALUE.")
        query.setdefault(name, []).append(value)
    body = None if data is None else _json(data)
    answer = session.client.request(method.upper(), path, query=query, json=body, key=key)
    if answer is not None:
        click.echo(dumps(answer))


def _json(given: str) -> Any:
    if given == "-":
        text = sys.stdin.read()
    else:
        text = Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise click.UsageError(f"The body is not valid JSON: {wrong}.") from wrong


@command("version")
@click.option("--portal", is_flag=True, help="Also that of the portal, and what it can do.")
def version_command(session: Session, portal: bool) -> None:
    """Print the release of this client."""
    from .. import __version__

    told: dict[str, Any] = {"client": __version__}
    if portal:
        from .begin import outdated

        told["portal"] = session.client.version().raw
        if warning := outdated(told["portal"], session.client.transport.url):
            note(warning)
    session.show(told, lambda: "\n".join(_line(name, value) for name, value in told.items()))


def _line(name: str, value: Any) -> str:
    if name == "client":
        return f"foretune {value}"
    return f"portal {value.get('version', '')}; features: {', '.join(value.get('features', []))}"
