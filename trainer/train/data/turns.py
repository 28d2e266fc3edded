"""The turns of a chat as transformers hands them to chat templates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Any

from trainer.formats import Chat, Message, ToolCall

Turn = dict[str, Any]
REASONING = ("reasoning_content", "thinking")  # templates read the one or the other


def turns_of(chat: Chat) -> list[Turn]:
    """Return the turns as transformers takes them.

    Calls without an id get one: some templates ask for it.
    """
    numbers = count()
    waiting: deque[str] = deque()
    turns: list[Turn] = []
    for turn in chat.messages:
        entry: Turn = {"role": turn.role, "content": turn.content}
        if turn.reasoning:
            entry |= dict.fromkeys(REASONING, turn.reasoning)
        if turn.calls:
            entry["tool_calls"] = [_call(call, f"call{next(numbers):05}") for call in turn.calls]
            waiting.extend(call["id"] for call in entry["tool_calls"])
        if turn.role == "tool":
            answered = waiting.popleft() if waiting else ""
            entry |= {key: value for key, value in _answer(turn, answered) if value}
        elif turn.name:
            entry["name"] = turn.name
        turns.append(entry)
    return turns


def _call(call: ToolCall, number: str) -> Turn:
    function = {"name": call.name, "arguments": call.arguments}
    return {"type": "function", "id": call.id or number, "function": function}


def _answer(turn: Message, answered: str) -> Iterator[tuple[str, str]]:
    yield "name", turn.name
    yield "tool_call_id", turn.call_id or answered
