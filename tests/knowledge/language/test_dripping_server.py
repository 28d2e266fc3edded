"""A server that sends a byte now and then: the time for an answer ends all the same."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from knowledge.language.chat import NoAnswer, ask
from knowledge.language.server import ChatServer
from tests.harness.threads import served

EVERY_S, WITHIN_S, MOST = 0.05, 0.4, 400


@contextmanager
def dripping(first: bytes, piece: bytes) -> Iterator[tuple[str, list[int]]]:
    """Its address, and how many pieces it could send on each connection before that was cut."""
    sent: list[int] = []
    ended = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.connection.recv(65_536)
            self.wfile.write(first)
            count = 0
            try:
                while count < MOST and not ended.wait(EVERY_S):
                    self.wfile.write(piece)
                    count += 1
            except OSError:
                pass
            sent.append(count)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with served(server):
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", sent
        finally:
            ended.set()


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b" "),
    ],
    ids=["a status line", "a header", "a body", "chunks", "a body until the end"],
)
def test_a_server_that_drips_is_cut_off(first: bytes, piece: bytes) -> None:
    with dripping(first, piece) as (url, sent):
        with pytest.raises(NoAnswer):
            ask(
                ChatServer(url, "m"), [{"role": "user", "content": "hi"}], schema={}, temperature=0,
                most_tokens=9, due=time.monotonic() + WITHIN_S,
            )  # fmt: skip
        until = time.monotonic() + 30
        while not sent and time.monotonic() < until:
            time.sleep(EVERY_S)
    assert sent
    assert max(sent) < MOST
