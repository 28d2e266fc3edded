"""The line between a node and the portal, and what can be done to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import Proxies

REQUEST = b"POST /agent/v1/sync HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
WAIT_S = 10


class Portal:
    """Answers everything with one word, and keeps what it heard."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                self.heard.append(data)
                connection.sendall(b"answer")

    def hears(self, times: int) -> bool:
        end = time.monotonic() + WAIT_S
        while len(self.heard) < times and time.monotonic() < end:
            time.sleep(0.01)
        return len(self.heard) == times


@pytest.fixture
def portal() -> Iterator[Portal]:
    made = Portal()
    yield made
    made.socket.close()


@pytest.fixture
def lines(portal: Portal) -> Iterator[Proxies]:
    made = Proxies(portal.port, ["alpha"])
    yield made
    made.stop()


def ask(lines: Proxies, request: bytes = REQUEST) -> bytes:
    """The answer; empty if the connection was closed without one."""
    try:
        with socket.create_connection(("127.0.0.1", lines["alpha"].port), timeout=WAIT_S) as line:
            line.sendall(request)
            return line.recv(100)
    except ConnectionError:
        return b""


def test_a_line_passes_everything_both_ways(lines: Proxies, portal: Portal) -> None:
    assert ask(lines) == b"answer"
    assert portal.heard == [REQUEST]


def test_a_cut_line_is_reset_until_it_is_mended(lines: Proxies, portal: Portal) -> None:
    lines.cut("alpha")
    assert ask(lines) == b""
    assert portal.heard == []
    lines["alpha"].undisturbed()
    assert ask(lines) == b"answer"


def test_an_answer_is_lost_after_the_portal_heard_the_question(lines: Proxies, portal: Portal) -> None:
    lines["alpha"].loses_answers = True
    assert ask(lines) == b""
    assert portal.heard == [REQUEST]


def test_what_was_sent_into_silence_arrives_afterwards(lines: Proxies, portal: Portal) -> None:
    lines["alpha"].holds = True
    with socket.create_connection(("127.0.0.1", lines["alpha"].port), timeout=WAIT_S) as line:
        line.sendall(REQUEST)
        time.sleep(0.3)
        assert portal.heard == []
        lines["alpha"].undisturbed()
        assert line.recv(100) == b"answer"


def test_old_messages_come_again_word_for_word(lines: Proxies, portal: Portal) -> None:
    ask(lines)
    lines.say_again("alpha")
    assert portal.hears(2)
    assert portal.heard[0] == portal.heard[1]
