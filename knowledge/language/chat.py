"""Ask a language model: one request, one answer, within bounds of time and size."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from knowledge.language.server import ChatServer
from trainer import strict_json

LARGEST = 1_000_000  # bytes of an answer
REFUSED_SCHEMA = (400, 404, 415, 422)  # how servers say that they do not know response_format
Message = Mapping[str, str]


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
    try:
        status, content = _post(server, {**body, "response_format": described}, due)
        if status in REFUSED_SCHEMA:
            status, content = _post(server, body, due)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as wrong:
        raise NoAnswer(f"{server.host} does not answer ({type(wrong).__name__})") from wrong
    if status != 200:
        raise NoAnswer(f"{server.host} answers with status {status}")
    return _read(server, messages, content)


def _post(server: ChatServer, body: Mapping[str, Any], due: float) -> tuple[int, bytes]:
    key = server.key_file.read_text().strip() if server.key_file else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    content = bytearray()
    with (
        httpx.Client(timeout=_left(due), follow_redirects=False) as client,
        client.stream("POST", server.endpoint, json=body, headers=headers) as answer,
    ):
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > LARGEST:
                raise NoAnswer(f"{server.host} answers with more than {LARGEST:,} bytes")
            _left(due)
        return answer.status_code, bytes(content)


def _left(due: float) -> float:
    left = due - time.monotonic()
    if left <= 0:
        raise httpx.ReadTimeout("the time for an answer is over")
    return left


def _read(server: ChatServer, messages: Sequence[Message], content: bytes) -> Answer:
    try:
        body = strict_json.loads(content, max_values=10_000)
        text = body["choices"][0]["message"]["content"]
        if not isinstance(text, str):
            raise TypeError("the content is no text")
        counted = (body.get("usage") or {}).get("total_tokens")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as wrong:
        raise NoAnswer(f"{server.host} does not answer like a chat server") from wrong
    estimated = (sum(len(one["content"]) for one in messages) + len(text)) // 4
    return Answer(text, max(estimated, counted if type(counted) is int else 0))


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, or that stands in its code fence; prose is None."""
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.strip("`").removeprefix("json").strip()
    try:
        found = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
