"""A small WSGI application for the tests of the web server.

It is impatient, so that they are short.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django

django.setup()  # what sends files knows the pages of errors, and those know forms

from portal.http.downloads import Piece  # noqa: E402
from portal.serving import pace  # noqa: E402
from portal.serving.queued import waited_s  # noqa: E402

pace.GRACE_S = 1.5
FOLDER = TemporaryDirectory()
FILE = Path(FOLDER.name) / "file"
holding: list[str] = []
released = threading.Event()
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


def digest(stream: BytesIO) -> str:
    found = hashlib.sha256()
    while data := stream.read(65536):
        found.update(data)
    return found.hexdigest()


def pieces() -> Iterator[bytes]:
    for number in range(300):
        yield bytes([number % 256]) * 50_000
