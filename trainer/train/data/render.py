"""Rows as text, with the part of it that is trained.

Trained are completions, assistant turns, and texts without a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainer.formats import PromptCompletion, Row, Text
from trainer.train.data.spans import Span
from trainer.train.data.template import Template
from trainer.train.errors import TrainError


@dataclass(frozen=True, slots=True)
class Rendered:
    """A row's text, and the spans of each turn that is trained.

    is_chat: the model's template wrote it, beginning included.
    """

    text: str
    turns: list[list[Span]]
    is_chat: bool = False


class Renderer:
    """Renders rows for one model. now: see Template.

    template: None for a model without a chat template; no chats are rendered for it.
    """

    def __init__(self, tokenizer: Any, now: datetime) -> None:
        self.template = Template(tokenizer, now) if tokenizer.chat_template else None

    def render(self, row: Row) -> Rendered:
        """Raises TrainError where the model's chat template refuses the row."""
        if isinstance(row, PromptCompletion):
            text = row.prompt + row.completion
            return Rendered(text, [[(len(row.prompt), len(text))]])
        if isinstance(row, Text):
            return Rendered(row.text, [[(0, len(row.text))]])
        if self.template is None:
            raise TrainError("The model has no chat template.")
        return Rendered(*self.template.render(row), is_chat=True)
