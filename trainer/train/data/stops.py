"""Tokens that end what a model says, and the chat template of a model without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainer.train.errors import TrainError


@dataclass(frozen=True, slots=True)
class Stops:
    """Tokens that end a turn, by id.

    announced: at these, generation with the model stops by itself.
    known: these and the end-of-sequence token of the tokenizer.
    special: all that may end a turn, `known` included, such as the `<|im_end|>` of a base model.
    whole: tokens that no text is cut within, `special` included.
    appended: what ends a text that brings no end; None where the model knows no such token.
    """

    announced: frozenset[int]
    known: frozenset[int]
    special: frozenset[int]
    whole: frozenset[int]
    appended: int | None

    @classmethod
    def of(cls, tokenizer: Any, generation: Any) -> Stops:
        """generation: the model's generation configuration, or None."""
        announced = frozenset(_ids(getattr(generation, "eos_token_id", None)))
        known = announced.union(_ids(tokenizer.eos_token_id))
        added: dict[int, Any] = tokenizer.added_tokens_decoder
        special = {*(id for id, token in added.items() if token.special), *tokenizer.all_special_ids}
        ends = special - {tokenizer.bos_token_id, tokenizer.unk_token_id} | known
        appended = min(known, default=None) if tokenizer.eos_token_id is None else tokenizer.eos_token_id
        return cls(announced, known, frozenset(ends), frozenset({*added, *special}), appended)


def _ids(value: Any) -> Iterator[int]:
    """One id, several or none."""
    if value is not None:
        yield from map(int, value if isinstance(value, list | tuple) else (value,))


def opening(tokenizer: Any) -> list[int]:
    """The tokens that the tokenizer puts before every text."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    places = range(len(whole) - len(bare) + 1)
    return next((whole[:at] for at in places if whole[at : at + len(bare)] == bare), [])


def plain_template(tokenizer: Any, stops: Stops) -> str:
    """A chat template of `role: content` lines, for a model that has none.

    Each answer is ended.

    Raises TrainError where the model knows no token to end an answer with.
    """
    if stops.appended is None:
        raise TrainError(
            "The model has neither a chat template nor an end-of-sequence token, so that no answer would end."
            " Choose a model with a chat template for these chats."
        )
    begin, end = (
        "{{ " + json.dumps("".join(tokenizer.convert_ids_to_tokens(ids)), ensure_ascii=False) + " }}"
        for ids in (opening(tokenizer), [stops.appended])
    )
    return (
        f"{begin}"
        "{% if tools %}tools: {{ tools | tojson }}\n{% endif %}"
        "{% for message in messages %}{% set ns = namespace(said=[]) %}"
        "{% for part in (message.reasoning_content, message.content) if part %}"
        "{% set ns.said = ns.said + [part] %}{% endfor %}"
        "{% for call in message.tool_calls or [] %}{% set ns.said = ns.said + ["
        "{'name': call.function.name, 'arguments': call.function.arguments} | tojson] %}{% endfor %}"
        "{{ message.role }}: {{ ns.said | join('\n') }}"
        "{% if message.role == 'assistant' %}" + end + "{% endif %}{{ '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
