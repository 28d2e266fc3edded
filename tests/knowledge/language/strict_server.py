"""A second server of language models, whose protocol shares no line with the first one.

It speaks HTTP by hand, checks requests as strictly as servers in use do, and words its answers in the ways
of many of them: `STYLES` by name.
"""

from __future__ import annotations

import json
import socketserver
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.harness.threads import served

MODEL = "strict-1"
REQUIRED = {"model", "messages"}
KNOWN = REQUIRED | {"temperature", "max_tokens", "max_completion_tokens", "response_format", "stream", "n"}
ROLES = {"system", "user", "assistant"}


def message(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def called(text: object) -> dict[str, Any]:
    """An answer that is nothing but a call."""
    call = {"id": "call_1", "type": "function", "function": {"name": "answer", "arguments": text}}
    return message(None, tool_calls=[call])


STYLES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "plain": message,
    "parts": lambda text: message([{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}]),
    "reasoning apart": lambda text: message(text, reasoning_content='I think of {"values": 5}', refusal=None),
    "reasoning inside": lambda text: message(f"<think>\nperhaps {{}}?\n</think>\n\n{text}"),
    "reasoning begun before": lambda text: message(f"It is 3. {{no}}\n</think>\n{text}"),
    "fence": lambda text: message(f"```json\n{text}\n```"),
    "fence in prose": lambda text: message(f"Here it is:\n\n```json\n{text}\n```\nDo ask for more."),
    "fence that is not closed": lambda text: message(f"```\n{text}\n"),
    "blanks around": lambda text: message(f"\n \t{text}  \r\n\n"),
    "byte order mark": lambda text: message(f"\ufeff{text}"),
    "call": called,
    "call of old": lambda text: message(None, function_call={"name": "answer", "arguments": text}),
    "call with an object": lambda text: called(json.loads(text)),
    "indented": lambda text: message(json.dumps(json.loads(text), indent=2)),
}
USELESS: Mapping[str, Any] = {
    "null": message(None),
    "nothing": message(""),
    "only reasoning": message(None, reasoning_content="Let me think about this for very long"),
    "a call without arguments": message(None, tool_calls=[{"function": {"name": "answer", "arguments": ""}}]),
    "calls of nothing": message(None, tool_calls=[]),
    "a number": message(5),
    "a refusal": message(None, refusal="I cannot help with that."),
    "no message": None,
    "a picture": message([{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}]),
    "two objects": message('{"values": []}{"values": []}'),
}


class StrictChat:
    """The requests that it got, and how it answers.

    model: from the messages to the text of an answer. word: from that text to a message. refuses: parts of
    requests that it does not know.
    """

    def __init__(
        self,
        model: Callable[[str], str],
        word: Callable[[str], Any],
        refuses: frozenset[str],
        *,
        chunked: bool,
    ) -> None:
        self.model, self.word, self.refuses, self.chunked = model, word, refuses, chunked
        self.url, self.served = "", 0

    def answer(self, line: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        if line.split(" ")[:2] != ["POST", "/v1/chat/completions"]:
            return 404, {"error": {"message": f"no route for {line}"}}
        if headers.get("content-type", "").partition(";")[0] != "application/json":
            return 415, {"error": {"message": "send application/json"}}
        if wrong := self._wrong(json.loads(body)):
            return 400, {"error": {"message": wrong, "type": "invalid_request_error", "code": None}}
        self.served += 1
        said = "\n".join(one["content"] for one in json.loads(body)["messages"])
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": None,
            "message": self.word(self.model(said)),
        }
        stamp = {"id": "x", "object": "chat.completion", "created": 1, "model": MODEL, "usage": None}
        return 200, {**stamp, "choices": [choice]}

    def _wrong(self, asked: dict[str, Any]) -> str:
        """Why a request is refused; empty if it is not."""
        if asked.get("model") != MODEL or not KNOWN >= asked.keys() >= REQUIRED:
            return f"model and messages are needed, known are {sorted(KNOWN)}"
        if refused := sorted(self.refuses & asked.keys()):
            return f"unsupported: {refused}"
        roles = [one["role"] for one in asked["messages"]]
        if "system" in self.refuses and "system" in roles:
            return "system role not supported"
        turns = [role for role in roles if role != "system"]
        if not set(roles) <= ROLES or turns != (["user", "assistant"] * len(turns))[: len(turns)]:
            return "conversation roles must alternate user/assistant"
        if any(type(one["content"]) is not str or not one["content"].strip() for one in asked["messages"]):
            return "each message needs words"
        return ""


@contextmanager
def strict_chat(
    model: Callable[[str], str],
    word: Callable[[str], Any] = message,
    refuses: frozenset[str] = frozenset(),
    *,
    chunked: bool = False,
) -> Iterator[StrictChat]:
    """The server on a free port of this machine."""
    chat = StrictChat(model, word, refuses, chunked=chunked)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline().decode().strip()
            headers = {}
            while head := self.rfile.readline().decode().strip():
                name, _, value = head.partition(":")
                headers[name.lower()] = value.strip()
            body = self.rfile.read(int(headers["content-length"]))
            status, content = chat.answer(line, headers, body)
            self._send(status, json.dumps(content, ensure_ascii=False).encode())

        def _send(self, status: int, body: bytes) -> None:
            how = "1.1" if chat.chunked else "1.0"  # without a length, the end of the connection is the end
            coded = "Transfer-Encoding: chunked\r\nConnection: close\r\n" if chat.chunked else ""
            self.wfile.write(
                f"HTTP/{how} {status} X\r\nContent-Type: application/json\r\n{coded}\r\n".encode()
            )
            if not chat.chunked:
                self.wfile.write(body)
                return
            for at in range(0, len(body), 7):
                piece = body[at : at + 7]
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_address[1]}"
    with served(server):
        yield chat
