"""Rows as text, with the part of it that is trained.

Trained are completions, assistant turns, and texts without a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainer.formats import Chat, PromptCompletion, Row
from trainer.formats.rows import compact
from trainer.train.data.spans import Span
from trainer.train.data.template import Template


@dataclass(frozen=True, slots=True)
class Rendered:
    """A row's text and its trained spans.

    closed: the text has its own end, so that none is appended.
    """

    text: str
    spans: list[Span]
    closed: bool = False


class Renderer:
    """Renders rows for one model. now: see Template."""

    def __init__(self, tokenizer: Any, now: datetime) -> None:
        self._template = Template(tokenizer, now) if tokenizer.chat_template else None

    @property
    def rewritten(self) -> int:
        return self._template.rewritten if self._template else 0

    def render(self, row: Row) -> Rendered:
        """Raises TrainError where the model's chat template refuses the row."""
        if isinstance(row, PromptCompletion):
            text = row.prompt + row.completion
            return Rendered(text, [(len(row.prompt), len(text))])
        if not isinstance(row, Chat):
            return Rendered(row.text, [(0, len(row.text))])
        if self._template is None:
            return _plain(row)
        return Rendered(*self._template.render(row), closed=True)


def _plain(chat: Chat) -> Rendered:
    """`role: content` lines, for a model without a chat template."""
    text, spans = f"tools: {compact(chat.tools)}\n" if chat.tools else "", []
    for turn in chat.messages:
        begin = len(text) + len(f"{turn.role}: ")
        text += f"{turn.role}: {turn.plain}\n"
        if turn.role == "assistant" and turn.weight:
            spans.append((begin, len(text)))
    return Rendered(text, spans)
