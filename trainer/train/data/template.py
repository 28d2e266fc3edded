"""Chats as their model's template writes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from trainer.formats import Chat
from trainer.train.data.spans import Drawn, Span
from trainer.train.data.turns import REASONING, turns_of
from trainer.train.errors import TrainError

_UNKNOWN = (
    "The model's chat template does not show it the {what} of the data. Choose a model whose template does"
    " (most instruction-tuned ones), or {remedy} in all rows."
)


class Template:
    """Renderer of chats.

    now: the date that a template takes for today, the same at each resume.
    rewritten: how many turns the template cut or changed, such as the reasoning of earlier
    turns.
    """

    def __init__(self, tokenizer: Any, now: datetime) -> None:
        self._tokenizer = tokenizer
        self._checked: set[str] = set()
        self.rewritten = 0
        _stop_clock(tokenizer, now)

    def render(self, chat: Chat) -> tuple[str, list[Span]]:
        """Return the text of a chat and its trained spans.

        Raises TrainError where the template refuses the chat, or leaves out parts that can only
        be meant to be seen: tools, their calls, the reasoning of the last turn.
        """
        drawn = Drawn(self._tokenizer, turns_of(chat), list(chat.tools) or None)
        self._check(chat, drawn)
        spans = drawn.spans([bool(turn.weight) for turn in chat.messages])
        self.rewritten += sum(
            turn.content.strip() not in drawn.text or turn.reasoning.strip() not in drawn.text
            for turn in chat.messages
        )
        return drawn.text, spans

    def _check(self, chat: Chat, drawn: Drawn) -> None:
        """A template knows a field or not: the first chat that has it tells."""
        last = chat.messages[-1]
        if chat.tools and self._first("tools") and drawn.text == drawn.without_tools():
            raise TrainError(_UNKNOWN.format(what="tools", remedy="remove tools and their calls"))
        for index, turn in enumerate(chat.messages):
            if turn.calls and self._first("calls") and drawn.same_without(index, "tool_calls"):
                raise TrainError(_UNKNOWN.format(what="tool calls", remedy="write them into the content"))
        if last.reasoning and self._first("reasoning") and drawn.same_without(-1, *REASONING):
            raise TrainError(_UNKNOWN.format(what="reasoning", remedy="write it into the content"))

    def _first(self, what: str) -> bool:
        seen = what in self._checked
        self._checked.add(what)
        return not seen


def _stop_clock(tokenizer: Any, now: datetime) -> None:
    """Fix the date that templates get from `strftime_now`.

    transformers lets no caller replace it by an argument.
    """
    from transformers.utils.chat_template_utils import _compile_jinja_template

    given = tokenizer.chat_template
    clock: Callable[[str], str] = now.strftime
    for template in given.values() if isinstance(given, dict) else [given]:
        try:
            _compile_jinja_template(template).environment.globals["strftime_now"] = clock
        except Exception as wrong:  # Jinja's own errors, and what its optimiser runs
            raise TrainError(f"The model's chat template cannot be read: {wrong}") from wrong
