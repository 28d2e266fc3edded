"""Bodies that end early.

Servers report them by a short read alone, which to a parser looks like a good end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
LONGEST_DIGITS = 18


class WholeBody:
    """A `wsgi.input` that raises OSError at an end before the announced length.

    `cut` says afterwards whether that happened.
    """

    def __init__(self, stream: Any, length: int) -> None:
        self._stream, self._left = stream, length
        self.cut = False

    def read(self, size: int) -> bytes:
        return self._checked(self._stream.read, size)

    def readline(self, size: int) -> bytes:
        return self._checked(self._stream.readline, size, b"\n")

    def _checked(self, take: Callable[[int], bytes], size: int, *ends: bytes) -> bytes:
        self.cut = True  # also where the stream raises
        data = take(size)
        self._left -= len(data)
        if self._left > 0 and len(data) < size and not data.endswith(ends):
            raise ConnectionError("the body is shorter than its announced length")
        self.cut = False
        return data


def with_whole_bodies(application: Application) -> Application:
    """The application, its requests with a WholeBody wherever a length is announced."""

    def wrapped(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or ""
        if length.isdecimal() and len(length) <= LONGEST_DIGITS:
            environ["wsgi.input"] = WholeBody(environ["wsgi.input"], int(length))
        return application(environ, start_response)

    return wrapped
