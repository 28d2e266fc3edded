"""Formats without a chat: a prompt with its completion, and a text alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainer.formats import tools, values
from trainer.formats.messages import conversation, turns
from trainer.formats.rows import Chat, PromptCompletion, Text
from trainer.formats.unused import Unused


def prompt_completion(raw: Mapping[str, Any], unused: Unused) -> PromptCompletion | Chat:
    """Read two texts, or two lists of messages.

    The messages of the prompt are not learnt.
    """
    prompt, completion = raw.get("prompt"), raw.get("completion")
    if isinstance(prompt, list) and isinstance(completion, list):
        question = tuple(
            replace(turn, weight=0) if turn.role == "assistant" else turn
            for turn in turns(prompt, unused, "prompt")
        )
        answer = turns(completion, unused, "completion")
        return Chat(conversation((*question, *answer)), tools.offered(raw))
    read = PromptCompletion(values.text(raw, "prompt"), values.text(raw, "completion"))
    if tools.offered(raw):
        raise ValueError("has tools, which need a chat: write the rows with messages")
    return read


def text(raw: Mapping[str, Any], _unused: Unused) -> Text:
    """A text of its own, all of it learnt."""
    return Text(values.text(raw, "text"))
