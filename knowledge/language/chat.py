"""Ask a language model: one request, one answer, within bounds of time and size."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from knowledge.language.server import ChatServer
from trainer import strict_json

LARGEST = 1_000_000  # bytes of an answer
REFUSED = (400, 404, 415, 422, 501)  # how servers say that they do not know a part of a request
NOTHING = "{}"  # an empty answer, quoted: many servers refuse messages without words
Message = Mapping[str, str]
Trace = Callable[[str, Mapping[str, Any]], None]


class NoAnswer(RuntimeError):
    """The server gave no usable answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The text that the model wrote, and the tokens that the exchange took."""

    text: str
    tokens: int


def ask(
    server: ChatServer,
    messages: Sequence[Message],
    *,
    schema: Mapping[str, Any],
    temperature: float,
    most_tokens: int,
    due: float,
) -> Answer:
    """Return the model's answer by the schema, which a server may ignore.

    due: on the clock of time.monotonic. Raises NoAnswer.
    """
    body: dict[str, Any] = {
        "model": server.model,
        "messages": list(messages),
        "temperature": temperature,
        "max_tokens": most_tokens,
    }
    described = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    status, content = 0, b""
    try:
        for form in ({**body, "response_format": described}, body, _plain(body)):
            status, content = _post(server, form, due)
            if status not in REFUSED:
                break
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as wrong:
        raise NoAnswer(f"{server.host} does not answer ({type(wrong).__name__})") from wrong
    if status != 200:
        raise NoAnswer(f"{server.host} answers with status {status}")
    return _read(server, messages, content)


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what some models do not know: a system role, a temperature.

    They have another word for the limit.
    """
    said = "\n\n".join(one["content"] for one in body["messages"][:2])
    first = {"role": "user", "content": said}
    messages = [first, *body["messages"][2:]]
    return {"model": body["model"], "messages": messages, "max_completion_tokens": body["max_tokens"]}


def _post(server: ChatServer, body: Mapping[str, Any], due: float) -> tuple[int, bytes]:
    key = server.key_file.read_text().strip() if server.key_file else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    content = bytearray()
    secure = server.endpoint.lower().startswith("https:")  # else the authorities need not be loaded
    with (
        httpx.Client(verify=secure, timeout=_left(due), follow_redirects=False) as client,
        _cut_at(due) as trace,
        client.stream(
            "POST", server.endpoint, json=body, headers=headers, extensions={"trace": trace}
        ) as answer,
    ):
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > LARGEST:
                raise NoAnswer(f"{server.host} answers with more than {LARGEST:,} bytes")
            _left(due)
        return answer.status_code, bytes(content)


@contextmanager
def _cut_at(due: float) -> Iterator[Trace]:
    """Cut connections when the time is over: one that drips is never silent for long."""
    opened: list[socket.socket] = []

    def trace(event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            opened.append(info["return_value"].get_extra_info("socket"))

    def cut() -> None:
        for one in opened:
            with suppress(OSError):  # closed, or wrapped by another one
                one.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_left(due), cut)
    timer.daemon = True
    timer.start()
    try:
        yield trace
    finally:
        timer.cancel()


def _left(due: float) -> float:
    left = due - time.monotonic()
    if left <= 0:
        raise httpx.ReadTimeout("the time for an answer is over")
    return left


def _read(server: ChatServer, messages: Sequence[Message], content: bytes) -> Answer:
    try:
        body = strict_json.loads(content, max_values=10_000)
        text = _written(body["choices"][0]["message"])
        counted = (body.get("usage") or {}).get("total_tokens")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as wrong:
        raise NoAnswer(f"{server.host} does not answer like a chat server") from wrong
    estimated = (sum(len(one["content"]) for one in messages) + len(text)) // 4
    return Answer(text, max(estimated, counted if type(counted) is int else 0))


def _written(message: Mapping[str, Any]) -> str:
    """The text of a message, which may come in parts, or as the arguments of a call.

    It is empty where the model only thought.
    """
    content = message.get("content")
    if isinstance(content, list):
        parts = (one.get("text") if isinstance(one, dict) else one for one in content)
        content = "".join(one for one in parts if isinstance(one, str))
    if content is not None and not isinstance(content, str):
        raise TypeError("the content is no text")
    return content or _called(message)


def _called(message: Mapping[str, Any]) -> str:
    """The first call in a message, as the JSON object that was asked for."""
    calls = message.get("tool_calls") or [{"function": message.get("function_call")}]
    call = calls[0].get("function") or {}
    given = call.get("arguments") or ""
    arguments = given if isinstance(given, dict) else json_object(str(given))
    return json.dumps({"tool": call.get("name"), **arguments}) if arguments else ""


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, or that stands behind thoughts or in its fence.

    Prose is None.
    """
    said = text.rpartition("</think>")[2]
    fenced = said.split("```")
    inside = fenced[1].removeprefix("json").removeprefix("JSON") if len(fenced) in (2, 3) else ""
    for bare in (text, said, inside):
        try:
            found = json.loads(bare.strip().removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None
