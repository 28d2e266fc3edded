"""A small WSGI application for the tests of the web server.

It is impatient, so that they are short.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django

django.setup()  # what sends files knows the pages of errors, and those know forms

from portal.http.downloads import Piece  # noqa: E402
from portal.serving import pace  # noqa: E402
from portal.serving.parking import first_seen, park  # noqa: E402
from portal.serving.queued import waited_s  # noqa: E402

pace.GRACE_S = 1.5
FOLDER = TemporaryDirectory()
FILE = Path(FOLDER.name) / "file"
holding: list[str] = []
released = threading.Event()
told: dict[str, str] = {}
readings = served = 0
FILE_BYTES = 20_000_000
PIECE_BEGINS, PIECE_BYTES = 1_000_000, 3_000_000
FILE.write_bytes(bytes(PIECE_BEGINS) + b"x" * PIECE_BYTES + bytes(FILE_BYTES - PIECE_BEGINS - PIECE_BYTES))


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path, size = environ["PATH_INFO"], environ.get("CONTENT_LENGTH", "0")
    status, headers, body = "200 OK", [], b"ok"
    if path == "/digest" or environ["REQUEST_METHOD"] == "PUT":
        body = digest(environ["wsgi.input"]).encode()
    elif path == "/refuse":
        status, body = "401 Unauthorized", f"not {size}".encode()
    elif path == "/wait":
        time.sleep(1)
    elif path in ("/hold", "/hold/too"):
        holding.append(path)
        released.wait(30)
    elif path in ("/held", "/healthz"):
        body = str(len(holding)).encode()
        if environ["QUERY_STRING"] == "release":
            released.set()
    elif path == "/news":
        body = news(**dict(pair.split("=") for pair in environ["QUERY_STRING"].split("&"))).encode()
    elif path == "/tell":
        told[environ["QUERY_STRING"]] = "told"
    elif path == "/waits":
        found = {"readings": readings, "threads": threads_named("waits"), "served": served}
        body = json.dumps(found).encode()
    elif path == "/waited":
        body = str(waited_s.get()).encode()
    elif path == "/file":
        start_response(status, [("Content-Length", str(FILE_BYTES))])
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](FILE.open("rb"))
        return wrapped
    elif path == "/piece":
        start_response("206 Partial Content", [("Content-Length", str(PIECE_BYTES))])
        opened = FILE.open("rb", buffering=0)
        return environ["wsgi.file_wrapper"](Piece(opened, PIECE_BEGINS, PIECE_BEGINS + PIECE_BYTES - 1))  # type: ignore[no-any-return]
    elif path == "/pieces":
        start_response(status, [])
        return pieces()
    start_response(status, [*headers, ("Content-Length", str(len(body)))])
    return [body]


def news(of: str, wait_s: str, asker: str = "one") -> str:
    """Wait until the subject was told of; a wait that is not admitted is answered at once."""
    global served
    served += 1
    seen = told.get(of, "")
    if not seen and park(of, seen=seen, for_s=float(wait_s), asker=asker):
        return "nobody sees this"
    return f"{seen or 'nothing'} {first_seen()!r}"


def signs_of(subjects: Collection[str]) -> dict[str, str]:
    global readings
    readings += 1
    return {subject: told.get(subject, "") for subject in subjects}


def threads_named(name: str) -> int:
    return sum(one.name == name for one in threading.enumerate())


def digest(stream: BytesIO) -> str:
    found = hashlib.sha256()
    while data := stream.read(65536):
        found.update(data)
    return found.hexdigest()


def pieces() -> Iterator[bytes]:
    for number in range(300):
        yield bytes([number % 256]) * 50_000
