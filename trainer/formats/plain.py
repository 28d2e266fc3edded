"""Formats without a chat: a prompt with its completion, and a text alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainer.formats import tools, values
from trainer.formats.messages import conversation, turns
from trainer.formats.rows import Chat, PromptCompletion, Text
from trainer.formats.unused import Unused

_NO_PROMPT = (
    "prompt is missing; write an empty text for a completion that follows nothing, or the field text alone"
)


def prompt_completion(raw: Mapping[str, Any], unused: Unused) -> PromptCompletion | Chat:
    """Read two texts, or two lists of messages.

    The messages of the prompt are not learnt.
    """
    prompt, completion = raw.get("prompt"), raw.get("completion")
    if isinstance(completion, list) and (isinstance(prompt, list) or prompt == ""):
        offered = tools.offered(raw)
        question = tuple(
            replace(turn, weight=0) if turn.role == "assistant" else turn
            for turn in (turns(prompt, unused, offered, "prompt") if prompt else ())
        )
        answer = turns(completion, unused, offered, "completion")
        return Chat(conversation((*question, *answer)), offered)
    if prompt is None:
        raise ValueError(_NO_PROMPT)
    read = PromptCompletion(values.any_text(raw, "prompt"), values.text(raw, "completion"))
    if tools.offered(raw):
        raise ValueError("has tools, which need a chat: write the rows with messages")
    return read


def text(raw: Mapping[str, Any], _unused: Unused) -> Text:
    """A text of its own, all of it learnt."""
    return Text(values.text(raw, "text"))
