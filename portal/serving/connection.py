"""One client's connection.

Its request is read without a thread, so a thread finds it complete.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from select import POLLIN, poll
from typing import Any

from gunicorn.http.body import LengthReader
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import Unreader

from portal.serving.outbox import Outbox
from portal.serving.pace import TransferPace
from portal.serving.parking import Turn
from portal.serving.refusals import target_of

HEAD_BYTES = 64_000
# Bodies up to this size wait in memory for a thread; a larger one is read by a thread for uploads.
BUFFERED_BYTES = 256_000
RECEIVE_BYTES = 256_000
GO_AHEAD = b"HTTP/1.1 100 Continue\r\n\r\n"


class LengthMissing(Exception):
    """The body comes in chunks, without a length.

    Nothing here takes such a body, and its size could not be judged before it is read.
    """


class RequestSource(Unreader):  # type: ignore[misc]
    """The source of bytes for gunicorn's parser.

    It gives the bytes that were received before, then, of an upload, those that arrive.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock = sock
        self.pace = TransferPace(time.monotonic())
        self.streaming = self.go_ahead = self.ended = False

    @property
    def held(self) -> int:
        return int(self.buf.seek(0, 2))

    def feed(self, data: bytes) -> None:
        self.buf.seek(0, 2)
        self.buf.write(data)

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return more of an upload; nothing once the client is too slow or has left."""
        data = self._next() if self.streaming and not self.ended else b""
        self.ended = not data
        return data

    def _next(self) -> bytes:
        if self.go_ahead:
            self.go_ahead = False
            self._sock.send(GO_AHEAD)
        ready = poll()
        ready.register(self._sock, POLLIN)
        while True:
            try:
                data = self._sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                patience_s = self.pace.due() - time.monotonic()
                if patience_s <= 0:
                    return b""
                ready.poll(patience_s * 1000)
            else:
                self.pace.moved(len(data), time.monotonic())
                return data


class HttpConnection:
    """A connection as gunicorn's threads see it (`TConn`).

    It has the state of the loop that reads it. `sock` is the outbox that threads write to, `parser` hands
    them the one request that was read.
    """

    initialized = data_ready = True
    is_http2 = False

    def __init__(self, cfg: Any, sock: socket.socket, client: Any, server: Any) -> None:
        self.socket, self.client, self.server = sock, client, server
        self.address = client[0] if isinstance(client, tuple) else ""
        self.source = RequestSource(sock)
        self._requests = RequestParser(cfg, iter(()), client)
        self._requests.unreader = self.source
        self._head = bytearray()
        self.target = ""  # the path that the request asks for, once its head is read
        self.request: Any = None
        self.sock = Outbox(sock, lambda size: self.source.pace.moved(size, time.monotonic()))
        self.keep = False
        self.turn: Turn | None = None  # of the request, from the first time that it is served
        self.idle_until: float | None = None  # set between two requests

    @property
    def parser(self) -> Iterator[Any]:
        return OneRequest(self)

    def init(self) -> None:
        """For gunicorn: there is nothing left to set up."""

    def fileno(self) -> int:
        return self.socket.fileno()

    def due(self) -> float:
        """When the client has taken too long over what it is at."""
        return self.source.pace.due() if self.idle_until is None else self.idle_until

    def receive(self) -> bool:
        """Take what has arrived; False if the client left. Raises OSError."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            return False
        if self.idle_until is not None:
            self.idle_until, self.source.pace = None, TransferPace(time.monotonic())
        self.source.pace.moved(len(data), time.monotonic())
        if self.request is None:
            self._head += data
        else:
            self.source.feed(data)
        return True

    def ready(self) -> bool:
        """Is there a request for a thread?

        Raises what gunicorn's parser raises, and LengthMissing.
        """
        if self.request is None and not self._parse():
            return False
        missing = self.missing()
        if missing and self.request._expected_100_continue:
            self.request._expected_100_continue, self.source.go_ahead = False, True
        self.source.streaming = self.request.body.reader.length > BUFFERED_BYTES
        if missing and self.source.go_ahead and not self.source.streaming:
            self.source.go_ahead = False
            self.socket.send(GO_AHEAD)
        return not missing or self.source.streaming

    def _parse(self) -> bool:
        end = self._head.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES:
            if len(self._head) > HEAD_BYTES:
                self.target = target_of(bytes(self._head[:HEAD_BYTES]))
                raise LimitRequestHeaders("the head of the request is too long")
            return False
        self.target = target_of(bytes(self._head[:end]))
        self.source.feed(bytes(self._head))
        self._head.clear()
        try:
            request = next(self._requests)
        except StopIteration:
            raise NoMoreData from None
        if not isinstance(request.body.reader, LengthReader):
            raise LengthMissing
        self.request = request
        return True

    def missing(self) -> int:
        """Bytes of the body that have not arrived."""
        return max(0, int(self.request.body.reader.length) - self.source.held)

    def next_request(self, until: float) -> bool:
        """Wait for another request; True if part of it is here already."""
        self.request.body.read()  # what the view left of a body that arrived whole
        self._head = bytearray(self.source.take_buffered())
        self.request, self.source.pace = None, TransferPace(time.monotonic())
        self.idle_until = None if self._head else until
        return bool(self._head)

    def close(self) -> None:
        self.sock.close()
        self.socket.close()


class OneRequest:
    """gunicorn's parser, as far as a thread needs one."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def __iter__(self) -> OneRequest:
        return self

    def __next__(self) -> Any:
        return self._connection.request

    def finish_body(self, deadline: float) -> bool:
        """Return whether another request may follow.

        None may follow a body of which something is still to come.
        """
        return not self._connection.source.ended and not self._connection.missing()
