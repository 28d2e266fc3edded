"""The web server under slow, greedy and rude clients.

Its threads answer and wait for none of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from portal.configuration import gunicorn
from portal.serving.connection import BUFFERED_BYTES, HEAD_BYTES
from tests.harness.servers import free_port
from tests.portal.serving.application import FILE_BYTES, PIECE_BYTES

REPOSITORY = Path(__file__).resolve().parents[3]
OPEN_HEAD = b"POST /digest HTTP/1.1\r\nHost: x\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    process: subprocess.Popen[bytes]

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=15)
        made.sendall(sent)
        return made

    def get(self, path: str = "/", **options: object) -> httpx.Response:
        return self.client().get(path, **options)  # type: ignore[arg-type]

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=60)


def start(*options: str) -> Server:
    """Two threads, so that few clients could occupy all."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "tests.portal.serving.application"]
    command += [
        "-c",
        "python:tests.portal.serving.options",
        "--threads=2",
        f"--bind=127.0.0.1:{port}",
        *options,
    ]
    server = Server(port, subprocess.Popen(command, cwd=REPOSITORY))
    for _ in range(1200):  # a minute
        try:
            server.connect().close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return server
    raise TimeoutError("gunicorn did not start")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = start()
    yield made
    made.process.kill()
    made.process.wait()


def body(size: int) -> bytes:
    return f"Content-Length: {size}\r\n\r\n".encode()


def is_cut(attacker: socket.socket) -> bool:
    """Does the server end the connection, whatever it says before?"""
    try:
        while attacker.recv(100_000):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.slow
def test_a_crowd_at_one_route_leaves_a_thread_for_others() -> None:
    """Eight people at once, four threads: three of them are held, and everybody is answered in the end."""
    server = start("--threads=4")
    try:
        with ThreadPoolExecutor(8) as crowd:
            waiting = [crowd.submit(server.get, "/hold", timeout=60) for _ in range(8)]
            while int(server.get("/held").text) < 3:
                time.sleep(0.02)
            time.sleep(0.3)  # for more of them to begin, if they could
            assert [server.get().text for _ in range(9)] == ["ok"] * 9
            assert server.get("/held").text == "3"
            server.get("/held?release")
            assert [one.result().text for one in waiting] == ["ok"] * 8
        assert server.get("/held").text == "8"
    finally:
        server.process.kill()
        server.process.wait()


def test_requests_that_wait_for_news_hold_no_thread_and_are_woken_by_it() -> None:
    """Twenty-eight of them, two threads, and one thread that reads for all."""
    server = start("--worker-connections=70")  # of which 28 may wait
    news = lambda of, wait_s=30: server.get(f"/news?of={of}&wait_s={wait_s}", timeout=60).text  # noqa: E731
    facts = lambda: json.loads(server.get("/waits").text)  # noqa: E731

    def all_wait(served: int) -> None:
        while facts()["served"] < served:
            time.sleep(0.02)

    def times_served(of: str) -> int:
        before = facts()["served"]
        assert news(of, wait_s=1) == "nothing ''"
        return int(facts()["served"]) - before

    try:
        with ThreadPoolExecutor(28) as crowd:
            told = [crowd.submit(news, "a") for _ in range(20)]
            others = [crowd.submit(news, "b") for _ in range(8)]
            all_wait(28)
            assert server.get().text == "ok", "both threads are free"
            assert times_served("c") == 1, "one too many is answered at once"
            server.get("/tell?a")
            assert {one.result() for one in told} == {"told ''"}
            assert facts()["served"] == 28 + 1 + 20, "the others were not served in vain"
            assert facts()["threads"] == 1
            assert times_served("c") == 2, "before and after its time"
            leavers = [server.connect(f"GET /news?of=d{one}&wait_s=30 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                       for one in range(20)]  # fmt: skip
            all_wait(28 + 1 + 20 + 2 + 20)
            assert times_served("c") == 1
            for one in leavers:
                one.close()
            while times_served("c") == 1:
                time.sleep(0.02)
            server.process.send_signal(signal.SIGTERM)
            assert {one.result() for one in others} == {"nothing ''"}, "they are answered before the end"
            assert server.process.wait(15) == 0
    finally:
        server.process.kill()
        server.process.wait()


@pytest.mark.slow
def test_slow_clients_occupy_no_thread_and_are_cut(server: Server) -> None:
    with ExitStack() as open_ones:
        attackers = [server.connect(OPEN_HEAD + body(1000) + b"x") for _ in range(8)]
        attackers += [server.connect(OPEN_HEAD) for _ in range(20)]
        attackers += [server.connect(OPEN_HEAD + body(10 * BUFFERED_BYTES) + b"x") for _ in range(8)]
        idle = [server.connect() for _ in range(200)]
        for attacker in (*attackers, *idle):
            open_ones.enter_context(attacker)
        assert [server.get().text for _ in range(20)] == ["ok"] * 20
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:  # a byte now and then buys no time
            gone = 0
            for attacker in attackers:
                try:
                    attacker.send(b"x")
                except OSError:
                    gone += 1
            if gone == len(attackers):
                break
            time.sleep(0.1)
        assert gone == len(attackers)
        assert all(is_cut(one) for one in idle)
        assert server.get().text == "ok"


def test_who_does_not_read_occupies_no_thread_and_is_cut(server: Server) -> None:
    with ExitStack() as open_ones:
        for path in ("/file", "/pieces") * 4:
            attacker = open_ones.enter_context(server.connect())
            attacker.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert [server.get().text for _ in range(10)] == ["ok"] * 10
        time.sleep(3)  # beyond the deadline
        received = attacker.recv(100_000)
        while data := attacker.recv(100_000):
            received += data
        assert len(received) < 300 * 50_000, "it was not cut"


def test_large_answers_arrive_whole(server: Server) -> None:
    assert len(server.get("/file").content) == FILE_BYTES
    assert server.get("/piece").content == b"x" * PIECE_BYTES
    expected = b"".join(bytes([number % 256]) * 50_000 for number in range(300))
    with server.client() as client, client.stream("GET", "/pieces") as answer:
        time.sleep(0.5)  # so that some of it waits on disk
        assert b"".join(answer.iter_bytes()) == expected


@pytest.mark.parametrize("size", [0, 10, BUFFERED_BYTES, BUFFERED_BYTES + 1, 20 * BUFFERED_BYTES])
def test_bodies_of_any_size_arrive_whole_and_the_connection_stays(server: Server, size: int) -> None:
    sent = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with server.client() as client:
        for _ in range(2):
            answer = client.post("/digest", content=sent)
            assert answer.text == hashlib.sha256(sent).hexdigest()
            assert answer.headers["Connection"] == "keep-alive"


def test_requests_sent_together_are_answered_in_order(server: Server) -> None:
    with server.connect(OPEN_HEAD + body(3) + b"abc" + OPEN_HEAD + body(3) + b"def" + GET) as client:
        said = b""
        while not said.endswith(b"ok"):
            said += client.recv(10_000)
    first, second = (hashlib.sha256(word).hexdigest().encode() for word in (b"abc", b"def"))
    assert said.index(first) < said.index(second)


def test_a_refusal_is_read_by_a_client_that_still_sends(server: Server) -> None:
    with server.client() as client:
        answer = client.post("/refuse", content=bytes(20_000_000))
        assert (answer.status_code, answer.text) == (401, "not 20000000")
        assert client.post("/refuse", content=b"short").status_code == 401


def test_a_client_that_waits_for_the_go_ahead_gets_it_when_its_body_is_wanted(server: Server) -> None:
    for size in (5, BUFFERED_BYTES + 5):
        expects = OPEN_HEAD + b"Expect: 100-continue\r\n" + body(size)
        with server.connect(expects) as client:
            assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
            client.sendall(b"x" * size)
            assert hashlib.sha256(b"x" * size).hexdigest().encode() in client.recv(10_000)
        with server.connect(expects.replace(b"/digest", b"/refuse")) as client:
            answer = client.recv(1000)
            assert (size < BUFFERED_BYTES) == answer.startswith(b"HTTP/1.1 100 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (OPEN_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", 411),
        (OPEN_HEAD + b"Content-Length: x\r\n\r\n", 400),
        (b"\r\n\r\nnothing\r\n\r\n", 400),
        (OPEN_HEAD + b"X: " + b"x" * HEAD_BYTES, 431),
    ],
)
def test_what_is_no_request_is_refused(server: Server, sent: bytes, status: int) -> None:
    with server.connect(sent) as client:
        assert client.recv(1000).startswith(f"HTTP/1.1 {status} ".encode())
        assert is_cut(client)


HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
POSTED = b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (POSTED + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, [400]),
        (POSTED + b"Content-Length: 0\r\nTransfer-Encoding: xchunked\r\n\r\n" + SMUGGLED, [501]),
        (POSTED + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED, [400]),
        (POSTED + b"Content-Length: +5\r\n\r\nhello", [400]),
        (POSTED + b"Content-Length: 0_5\r\n\r\nhello", [400]),
        (HEALTHZ + b"Content-Length : 5\r\n\r\nhello", [400]),
        (HEALTHZ + b"X-A: b\r\n c\r\n\r\n", [400]),
        (HEALTHZ + b"X-Request-ID: a\rSet-Cookie: x=1\r\n\r\n", [400]),
        ((HEALTHZ + b"\r\n") * 2 + HEALTHZ + b"Connection: close\r\n\r\n", [200] * 3),
    ],
    ids=["length and chunks", "unknown coding", "two lengths", "a sign", "an underscore", "a space", "folded",
         "carriage return", "three at once"],
)  # fmt: skip
def test_no_request_hides_in_another(server: Server, sent: bytes, statuses: list[int]) -> None:
    with server.connect(sent) as client:
        said = read_all(client)
    assert [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", said)] == statuses
    assert b"evil" not in said
    assert b"x=1" not in said


def test_healthz_answers_while_all_threads_are_busy() -> None:
    server = start()
    try:
        with ThreadPoolExecutor(3) as crowd:
            holding = [crowd.submit(server.get, path, timeout=60) for path in ("/hold", "/hold/too")]
            while int(server.get("/healthz").text) < len(holding):
                time.sleep(0.05)
            late = crowd.submit(server.get, "/waited")
            time.sleep(2)
            assert not any(request.done() for request in (*holding, late))
            server.get("/healthz?release")
            assert float(late.result().text) > 1
        assert float(server.get("/waited").text) < 1
    finally:
        server.process.kill()
        server.process.wait()


def test_a_slow_body_for_healthz_keeps_no_other_waiting(server: Server) -> None:
    with server.connect(OPEN_HEAD.replace(b"POST /digest", b"PUT /healthz")) as slow:
        slow.sendall(body(2 * BUFFERED_BYTES) + b"x")
        time.sleep(0.3)
        assert server.get("/healthz").text == "0"
        slow.setblocking(False)
        with pytest.raises(BlockingIOError):
            slow.recv(1)


def test_no_header_makes_one_address_another(server: Server) -> None:
    assert server.get("/wait/waited", headers={"SCRIPT_NAME": "/wait"}).text == "ok"


def test_of_too_many_connections_of_an_address_the_oldest_idle_one_ends(server: Server) -> None:
    share = gunicorn.worker_connections // 2
    with ExitStack() as open_ones:
        idle = []
        for _ in range(share):
            idle.append(open_ones.enter_context(server.connect(GET)))
            assert idle[-1].recv(1000).endswith(b"ok")
            time.sleep(0.1 if len(idle) == 1 else 0)  # a client has its answer before it counts as idle
        busy = open_ones.enter_context(server.connect(GET.replace(b"/ ", b"/wait ")))
        assert server.get().text == "ok"
        assert idle[0].recv(1000) == b""
        assert busy.recv(1000).endswith(b"ok")
        idle[-1].sendall(GET)
        assert idle[-1].recv(1000).endswith(b"ok")


def test_term_ends_it_though_clients_hang_on() -> None:
    server = start("--graceful-timeout=5")
    with server.connect(GET) as idle, server.connect(OPEN_HEAD) as slow:
        assert idle.recv(1000).endswith(b"ok")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0
        assert is_cut(idle)
        assert is_cut(slow)


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"POST /api/jobs/ HTTP/1.1\r\nHost: x\r\nContent-Length: nine\r\n\r\n", 400, "bad_request"),
        (
            b"POST /agent/v1/sync HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            411,
            "length_required",
        ),
        (b"GET /api/jobs/?q=" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "uri_too_long"),
        (b"GET /api/jobs/ HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000, 431, "headers_too_large"),
        (
            b"GET /api/jobs/ HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
            431,
            "headers_too_large",
        ),
    ],
)
def test_programs_are_refused_in_json(server: Server, sent: bytes, status: int, code: str) -> None:
    with server.connect(sent) as client:
        head, _, said = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"application/json" in head
    error = json.loads(said)["error"]
    assert (error["code"], error["fields"]) == (code, {})
    assert error["message"].count(".") >= 2


def test_people_are_refused_by_a_page_that_runs_nothing_they_sent(server: Server) -> None:
    with server.connect(b"<script> HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        said = read_all(client)
    assert b"text/html" in said
    assert b"<script>" not in said


def read_all(client: socket.socket) -> bytes:
    said = b""
    while data := client.recv(10_000):
        said += data
    return said
