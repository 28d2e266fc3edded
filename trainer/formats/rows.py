"""Rows as the trainer takes them, whatever format they were written in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that an assistant calls."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat; a `weight` of 0 keeps an assistant's turn out of the loss.

    reasoning: what the assistant thinks before it answers. name and call_id: of a tool's turn, which tool
    answers, and which call.
    """

    role: str
    content: str
    weight: int = 1
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    name: str = ""
    call_id: str = ""

    @property
    def plain(self) -> str:
        """The turn as text, for models without a chat template.

        It consists of reasoning, content and calls.
        """
        if not self.reasoning and not self.calls:
            return self.content
        calls = (compact({"name": call.name, "arguments": call.arguments}) for call in self.calls)
        return "\n".join(part for part in (self.reasoning, self.content, *calls) if part)


@dataclass(frozen=True, slots=True)
class Chat:
    """Turns of a system, users, assistants and tools.

    tools: JSON schemas of the tools that may be called.
    """

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of the tools and of `role: content` lines.

        These lines are the plain rendering of a chat.
        """
        turns = sum(len(turn.role) + len(turn.plain.encode()) + 3 for turn in self.messages)
        return turns + (len(compact(self.tools).encode()) if self.tools else 0)


@dataclass(frozen=True, slots=True)
class PromptCompletion:
    """A prompt that is read and a completion that is learnt."""

    prompt: str
    completion: str

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of both texts."""
        return len(self.prompt.encode()) + len(self.completion.encode())


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is learnt as a whole."""

    text: str

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of the text."""
        return len(self.text.encode())


Row = Chat | PromptCompletion | Text


def compact(value: Any) -> str:
    """JSON as chat templates write it."""
    return json.dumps(value, ensure_ascii=False)
