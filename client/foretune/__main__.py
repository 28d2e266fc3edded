"""The command `foretune`: what a portal's REST API offers, from the shell.

    foretune version
    foretune api GET jobs/ -q limit=2
    foretune api POST jobs/ftjob-…/cancel/
    foretune api POST jobs/ -d @job.json

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not signed in or not allowed, 4 not found,
5 out of reach, 6 conflict.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import __version__

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
REFUSED, USAGE, UNREACHABLE = 1, 2, 5
EXIT_CODES = {401: 3, 403: 3, 404: 4, 409: 6, 412: 6, 503: UNREACHABLE}


class Usage(Exception):
    """Arguments that cannot be understood.

    The message says which, and how they are written.
    """


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="foretune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = made.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="print the release of this client")
    api = commands.add_parser("api", help="ask the REST API and print its answer as JSON")
    api.add_argument("method", type=str.upper, choices=METHODS)
    api.add_argument("path", help="below /api/, e.g. jobs/")
    api.add_argument(
        "-q", "--query", action="append", default=[], metavar="NAME=VALUE", help="a query parameter"
    )
    api.add_argument("-d", "--data", metavar="JSON|@FILE|-", help="the body: JSON, a file with it, or stdin")
    api.add_argument("--url", default="", help="the portal's address (FORETUNE_URL)")
    api.add_argument(
        "--token-file", type=Path, help="a file with the API token (FORETUNE_TOKEN holds it otherwise)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.command == "version":
        print(f"foretune {__version__}")
        return 0
    return _ask(options)


def _ask(options: argparse.Namespace) -> int:
    import httpx  # a quarter of a second that `version` and --help can do without

    from .http import ApiError, NotConfigured, PortalClient

    try:
        token = options.token_file.read_text().strip() if options.token_file else ""
        client = PortalClient(options.url, token)
        body = {} if options.data is None else {"json": _json(options.data)}
        answer = client.request(options.method, options.path, params=_query(options.query), **body)
    except (NotConfigured, Usage, OSError, UnicodeDecodeError) as wrong:
        return _failed(str(wrong), USAGE)
    except ApiError as refused:
        return _failed(str(refused), EXIT_CODES.get(refused.status, REFUSED))
    except httpx.HTTPError as away:
        return _failed(f"The portal is out of reach: {away}", UNREACHABLE)
    if answer is not None:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    return 0


def _query(given: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [one.partition("=") for one in given]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        raise Usage(f"-q {wrong[0]}: write NAME=VALUE.")
    return [(name, value) for name, _, value in pairs]


def _json(given: str) -> Any:
    if given == "-":
        text = sys.stdin.read()
    else:
        text = Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
    try:
        return json.loads(text)
    except ValueError as wrong:
        raise Usage(f"The body is not valid JSON: {wrong}.") from wrong


def _failed(message: str, code: int) -> int:
    print(f"foretune: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
