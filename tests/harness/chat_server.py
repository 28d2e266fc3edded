"""A language model's server that says what a test tells it to, over real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from knowledge.language.server import ChatServer
from tests.harness.threads import served

Script = Callable[[dict[str, Any]], "str | Reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `cut`: fewer bytes than announced. `hang`: nothing until the server ends."""

    body: bytes = b"{}"
    status: int = 200
    cut: bool = False
    hang: bool = False


@dataclass
class ScriptedChat:
    """`script` answers each request; a text becomes the model's message."""

    script: Script
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def server(self) -> ChatServer:
        return ChatServer(self.url, "scripted")

    def answer(self, request: dict[str, Any]) -> Reply:
        reported = self.script(request)
        if isinstance(reported, Reply):
            return reported
        body = {
            "choices": [{"message": {"role": "assistant", "content": reported}}],
            "usage": {"total_tokens": 50},
        }
        return Reply(json.dumps(body).encode())


@contextmanager
def chatting(script: Script) -> Iterator[ScriptedChat]:
    """The server on a free port of this machine."""
    chat = ScriptedChat(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat.asked.append(request)
            chat.keys.append(self.headers.get("Authorization", ""))
            reply = chat.answer(request)
            if reply.hang:
                chat.over.wait(60)
                return
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body) + (100 if reply.cut else 0)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_port}/v1"
    with served(server):
        try:
            yield chat
        finally:
            chat.over.set()
