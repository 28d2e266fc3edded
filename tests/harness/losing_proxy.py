"""A proxy between a client and a portal that loses the first answer to each request that creates."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "host"})


def counted(header: str) -> Callable[[Message], bool]:
    """First requests of clients that count their tries in a header."""
    return lambda headers: headers.get(header) == "0"


def by_key() -> Callable[[Message], bool]:
    """First requests under each Idempotency-Key."""
    known = set[str]()

    def is_first(headers: Message) -> bool:
        key = headers.get("Idempotency-Key")
        if key is None or key in known:
            return False
        known.add(key)
        return True

    return is_first


@contextmanager
def losing_answers(url: str, *, is_first: Callable[[Message], bool]) -> Iterator[tuple[str, list[str]]]:
    """Yield the proxy's address, and the paths whose answers it lost.

    is_first: by its headers, is this POST a first one? Its answer is lost after the portal has given it.
    """
    there, lost = urlsplit(url), list[str]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def relay(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            portal = http.client.HTTPConnection(there.hostname or "", there.port, timeout=60)
            sent = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            portal.request(self.command, self.path, body, sent)
            answer = portal.getresponse()
            content = answer.read()
            portal.close()
            if self.command == "POST" and is_first(self.headers):
                lost.append(self.path)
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP | {"content-length"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = relay  # noqa: N815 - the server's names

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", lost
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
