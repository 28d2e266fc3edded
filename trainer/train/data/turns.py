"""The turns of a chat as transformers hands them to chat templates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from trainer.formats import Chat, Message, ToolCall
from trainer.formats.rows import compact

Turn = dict[str, Any]
REASONING = ("reasoning_content", "thinking")  # templates read the one or the other


@dataclass(frozen=True, slots=True)
class Reading:
    """The way in which a template takes turns, where it is not transformers' own.

    roles: the names by which it knows roles.
    arguments_as_text: calls have the JSON text of their arguments (DeepSeek V3).
    content_as_parts: contents are lists of parts, as for models that see images.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    arguments_as_text: bool = False
    content_as_parts: bool = False

    def of(self, turns: Iterable[Turn]) -> list[Turn]:
        """The turns in this way."""
        return [self._turn(turn) for turn in turns]

    def _turn(self, turn: Turn) -> Turn:
        turn = {**turn, "role": self.roles.get(turn["role"], turn["role"])}
        if self.content_as_parts:
            turn["content"] = [{"type": "text", "text": turn["content"]}] if turn["content"] else []
        if self.arguments_as_text and "tool_calls" in turn:
            turn["tool_calls"] = [_as_text(call) for call in turn["tool_calls"]]
        return turn


def _as_text(call: Turn) -> Turn:
    function = call["function"]
    return {**call, "function": {**function, "arguments": compact(function["arguments"])}}


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
